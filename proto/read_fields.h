// Reads a message of a file into a struct, as the table of the struct's fields says
// (sim/base/field.h).
//
//   ParallelPlan plan;
//   read_fields(message, plan_fields(), plan, "plan.", problems);
//
// Only fields that the message has are read. A field that must be given and isn't, a text that
// can't be read and a value outside its limits are reported under the field's path, the last two
// once: such a value is 0 or unset from then on, which later checks pass over.

#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "proto/problem_list.h"
#include "sim/base/field.h"

namespace stepsim {

// REQUIRES: unmatched_fields() of the two is empty but for `catalog` and its like; `spec` is of the
// table's struct.
void read_any_fields(const google::protobuf::Message& message, const AnyFieldTable& table,
                     void* spec, const std::string& prefix, ProblemList& problems);

template <class Struct>
void read_fields(const google::protobuf::Message& message, const FieldTable<Struct>& table,
                 Struct& spec, const std::string& prefix, ProblemList& problems) {
  read_any_fields(message, table, &spec, prefix, problems);
}

// Fields of the message without a row in the table, and rows without a field: "Plan.tp has no row".
std::vector<std::string> unmatched_fields(const google::protobuf::Descriptor& message,
                                          const AnyFieldTable& table);

}  // namespace stepsim
