// Reading a message from a file: protobuf text (.textproto) or JSON (.json) with the same field
// names. All problems of a file are found in one reading; those of protobuf text are reported by
// line and column ("plan.textproto:3:5"), those of JSON by field ("plan.json: plan.tp") or, where
// it is no JSON at all, by line and column too.

#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>
#include <string_view>

#include "proto/problem_list.h"

namespace stepsim {

// A text and where it comes from.
struct SourceText {
  std::string name;       // for problems: "experiment.textproto"
  std::string extension;  // ".textproto" or ".json"
  std::string text;
};

// True if a person who wrote this means a file, not a catalog name.
bool looks_like_file(std::string_view name);

// Reads a file; reports it under `field` and returns nothing when it can't, or when its extension
// is none of the two.
std::optional<SourceText> read_source(const std::string& path, std::string_view field,
                                      ProblemList& problems);

// `prefix` is the path of the message in the experiment ("model."), under which later problems of
// fields that could not be read would be reported. False if the reading stopped at a problem of
// syntax: what is missing in the message then says nothing.
bool read_message(const SourceText& source, std::string_view prefix,
                  google::protobuf::Message& message, ProblemList& problems);

}  // namespace stepsim
