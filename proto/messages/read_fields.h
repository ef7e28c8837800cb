// Reads a message of a file into a struct by the table of the struct's fields (sim/fields/field.h).
//
//   ParallelPlan plan;
//   read_fields(message, plan_fields(), plan, "plan.", problems);
//
// Only fields that the message has are read. Problems are reported under the field's path: a
// required field that is missing, a text that cannot be read, a value outside its limits. The
// latter two are reported once: the value is then set to 0 or unset, which later checks ignore.

#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "proto/messages/problem_list.h"
#include "sim/fields/field.h"

namespace stepsim {

// REQUIRES: unmatched_fields() of the two lists only `catalog` and similar; `spec` is the table's
// struct.
void read_any_fields(const google::protobuf::Message& message, const AnyFieldTable& table,
                     void* spec, const std::string& prefix, ProblemList& problems);

template <class Struct>
void read_fields(const google::protobuf::Message& message, const FieldTable<Struct>& table,
                 Struct& spec, const std::string& prefix, ProblemList& problems) {
  read_any_fields(message, table, &spec, prefix, problems);
}

// Returns fields of the message without a row in the table, and rows without a field: "Plan.tp has
// no row".
std::vector<std::string> unmatched_fields(const google::protobuf::Descriptor& message,
                                          const AnyFieldTable& table);

}  // namespace stepsim
