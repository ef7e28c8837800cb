// Accesses fields of a protobuf message by name, for --set and JSON files.
//
//   set_field(experiment, "plan.tp", "8");
//   set_field(experiment, "cluster.torus.axes[2].size", "8");
//
//   set_field(experiment, "cluster..nic_bandwidth", "400Gbps");
//
// A path is field names joined by dots; dashes count as underscores. Two dots stand for whatever
// lies between: the field must be in one of the groups that are there, and in no two of them. An
// element of a list has its index behind the name; the index after the last one appends. Setting a
// member of a oneof replaces the other members.

#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// Returns what is wrong, and then the message is unchanged; nullopt on success. A list of plain
// values is set as a whole, separated by commas. Whole numbers may be ranges: 0-7,16.
std::optional<std::string> set_field(google::protobuf::Message& root, std::string_view path,
                                     std::string_view value);

// The field of that name, or what is wrong: "no field tpp in Plan; did you mean tp?", and where all
// fields are listed.
struct FieldOrProblem {
  const google::protobuf::FieldDescriptor* field = nullptr;
  std::string problem;
};
FieldOrProblem find_field(const google::protobuf::Descriptor& message, std::string_view name);

// Refusal says why a text is not a value of a field.
struct Refusal {
  std::string accepted;  // "must be a whole number"
  std::string hint;      // "; did you mean 8192?", or nothing
};

// Reads `text` into one plain field, or appends it to a list of plain values.
// REQUIRES: the field is not a message.
std::optional<Refusal> set_plain(google::protobuf::Message& message,
                                 const google::protobuf::FieldDescriptor& field,
                                 std::string_view text);

// Writes a plain value as a person would, so that set_plain() reads it back. `index`: its place if
// the field is a list; otherwise ignored. REQUIRES: the field is not a message.
std::string plain_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field, int index);

// Copies every field that `changes` has over `base`: messages field by field, lists as a whole.
// REQUIRES: both have the same type.
void put_over(google::protobuf::Message& base, const google::protobuf::Message& changes);

}  // namespace stepsim
