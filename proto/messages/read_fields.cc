#include "proto/messages/read_fields.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "proto/messages/message_fields.h"
#include "sim/base/small_letters.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;

// Elements of a list are separated by commas, as on the command line.
std::string text_of_field(const ProtoMessage& message, const FieldDescriptor& field) {
  if (!field.is_repeated()) return plain_text(message, field, 0);
  std::string text;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    text += (i == 0 ? "" : ",") + plain_text(message, field, i);
  }
  return text;
}

bool has(const ProtoMessage& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

// Returns "must be given: tokens of a sequence".
std::string missing_text(const AnyField& field) {
  std::string_view help = field.doc().help;
  help = help.substr(0, std::min(help.find(". "), help.size()));
  if (help.ends_with('.')) help.remove_suffix(1);
  std::string text(help);
  if (!text.empty()) text[0] = small_letter(text[0]);
  const std::string accepts = field.fields() == nullptr ? field.accepts() : "";
  // Only the text of a quantity has a unit.
  const bool is_quantity = accepts.find(" such as ") != std::string::npos;
  return "must be given: " + text + (is_quantity ? " (" + accepts + ")" : "");
}

void read_value(const std::string& text, const AnyField& field, void* spec, const std::string& path,
                ProblemList& problems) {
  std::vector<Problem> found;
  for (std::string& message : field.read(text, spec)) found.push_back({path, std::move(message)});
  problems.add(std::move(found));
  if (auto problem = limit_problem(field, spec)) {
    problems.add(path, std::move(*problem));
    field.clear(spec);
  }
}

// Reports a message that must have one of the rows and has none.
void check_choice(const ProtoMessage& message, const AnyFieldTable& table, const std::string& path,
                  ProblemList& problems) {
  if (table.one_of().empty()) return;
  const bool has_one = std::ranges::any_of(table.fields(), [&](const auto& row) {
    const FieldDescriptor* field =
        message.GetDescriptor()->FindFieldByName(std::string(row->name()));
    return field != nullptr && has(message, *field);
  });
  if (has_one) return;
  problems.add(path,
               "must be " + std::string(table.one_of()) + ": " + comma_separated(table.names()));
}

void read_outer(const ProtoMessage& message, const FieldDescriptor& of, const AnyField& field,
                void* spec, const std::string& path, ProblemList& problems) {
  const Reflection& reflection = *message.GetReflection();
  if (!of.is_repeated()) {
    check_choice(reflection.GetMessage(message, &of), *field.fields(), path, problems);
    read_any_fields(reflection.GetMessage(message, &of), *field.fields(), field.add_element(spec),
                    path + ".", problems);
    return;
  }
  for (int i = 0; i < reflection.FieldSize(message, &of); ++i) {
    read_any_fields(reflection.GetRepeatedMessage(message, &of, i), *field.fields(),
                    field.add_element(spec), path + "[" + std::to_string(i) + "].", problems);
  }
}

void collect_unmatched(const Descriptor& message, const AnyFieldTable& table,
                       const std::string& prefix, std::vector<std::string>& unmatched) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string path = prefix + field.name();
    const AnyField* row = table.find(field.name());
    const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (row == nullptr) {
      unmatched.push_back(path + " has no row, so nothing reads it");
    } else if (is_message != (row->fields() != nullptr)) {
      unmatched.push_back(path + " is a group of fields in only one of message and table");
    } else if (is_message && field.is_repeated() != row->is_list()) {
      unmatched.push_back(path + " is a list of groups in only one of message and table");
    } else if (is_message) {
      collect_unmatched(*field.message_type(), *row->fields(), path + ".", unmatched);
    }
  }
  for (const auto& row : table.fields()) {
    if (message.FindFieldByName(std::string(row->name())) != nullptr) continue;
    unmatched.push_back(prefix + std::string(row->name()) +
                        " has a row but no field in the message, so no file can give it");
  }
}

}  // namespace

void read_any_fields(const ProtoMessage& message, const AnyFieldTable& table, void* spec,
                     const std::string& prefix, ProblemList& problems) {
  for (const auto& row : table.fields()) {
    const FieldDescriptor* field =
        message.GetDescriptor()->FindFieldByName(std::string(row->name()));
    if (field == nullptr) continue;  // a row whose message is still to be written
    const std::string path = prefix + std::string(row->name());
    if (!has(message, *field)) {
      if (row->doc().required) problems.add(path, missing_text(*row));
    } else if (row->fields() != nullptr) {
      read_outer(message, *field, *row, spec, path, problems);
    } else {
      read_value(text_of_field(message, *field), *row, spec, path, problems);
    }
  }
}

std::vector<std::string> unmatched_fields(const Descriptor& message, const AnyFieldTable& table) {
  std::vector<std::string> unmatched;
  collect_unmatched(message, table, message.name() + ".", unmatched);
  return unmatched;
}

}  // namespace stepsim
