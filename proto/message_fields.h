// Fields of a protobuf message by name, as --set and files in JSON use them.
//
//   set_field(experiment, "plan.tp", "8");
//   set_field(experiment, "cluster.torus.axes[2].size", "8");
//
// A path is field names joined by dots; dashes count as underscores. An element of a list has its
// index behind the name; the index after the last one appends. Setting a member of a oneof takes
// the place of the other members.

#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// Says what is wrong, and then the message is unchanged; or nothing. A list of plain values is set
// as a whole, separated by commas; whole numbers may be ranges: 0-7,16.
std::optional<std::string> set_field(google::protobuf::Message& root, std::string_view path,
                                     std::string_view value);

// The field of that name, or what is wrong: "no field tpp in Plan; did you mean tp?", and where
// all of them are listed.
struct FieldOrProblem {
  const google::protobuf::FieldDescriptor* field = nullptr;
  std::string problem;
};
FieldOrProblem find_field(const google::protobuf::Descriptor& message, std::string_view name);

// Why a text is no value of a field.
struct Refusal {
  std::string accepted;  // "must be a whole number"
  std::string hint;      // "; did you mean 8192?", or nothing
};

// Reads `text` into one plain field, or appends it to a list of plain values.
// REQUIRES: the field is not a message.
std::optional<Refusal> set_plain(google::protobuf::Message& message,
                                 const google::protobuf::FieldDescriptor& field,
                                 std::string_view text);

// A plain value as a person would write it, so that set_plain() reads it back. `index`: its place
// if the field is a list, else ignored. REQUIRES: the field is not a message.
std::string plain_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field, int index);

// Puts every field that `changes` has over those of `base`: messages field by field, lists as a
// whole. REQUIRES: both are of one type.
void put_over(google::protobuf::Message& base, const google::protobuf::Message& changes);

}  // namespace stepsim
