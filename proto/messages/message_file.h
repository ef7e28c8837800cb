// Reads a message from a file: protobuf text (.textproto) or JSON (.json) with the same field
// names; either may be compressed (.json.gz). One reading finds all problems of a file. Problems of
// protobuf text are reported by line and column ("plan.textproto:3:5"). Those of JSON are reported
// by field ("plan.json: plan.tp"), or by line and column if the text is not JSON.

#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>
#include <string_view>

#include "proto/messages/problem_list.h"
#include "sim/base/input_file.h"

namespace stepsim {

// SourceText is a text and its origin.
struct SourceText {
  std::string name;       // for problems: "experiment.textproto"
  std::string extension;  // ".textproto" or ".json"
  std::string text;
};

// Returns whether a person who wrote this means a file, not a catalog name.
bool looks_like_file(std::string_view name);
// Returns whether there is a file of this name whose ending none of the files of stepsim has: what
// another program wrote, perhaps.
bool is_foreign_file(const std::string& name);
inline constexpr std::string_view kForeignFiles =
    "stepsim import reads files of other software: nccl-topology, slurm-topology, ns3-topology, "
    "htsim-topology and astra-cluster make clusters; stepsim help import has all kinds";
// Names of software have slashes: "nemo-25/llama3-70b".
bool ends_like_file(std::string_view name);

// Returns the name of a file without its folder and what tells its format: "r" for "out/r.json.gz".
std::string stem_of(const std::string& path);

// Reads a file. If that fails, or its extension is neither of the two, it reports a problem under
// `field` and returns nullopt.
std::optional<SourceText> read_source(const std::string& path, std::string_view field,
                                      ProblemList& problems, InputKind kind = InputKind::kText);

// `prefix` is the path of the message in the experiment ("model."). Later problems of unreadable
// fields would be reported under it. Returns false if a syntax error stopped the reading; a field
// that is missing in the message then means nothing.
bool read_message(const SourceText& source, std::string_view prefix,
                  google::protobuf::Message& message, ProblemList& problems);

}  // namespace stepsim
