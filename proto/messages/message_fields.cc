#include "proto/messages/message_fields.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;

bool is_message(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

std::vector<std::string> names_of_fields(const Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return names;
}

// Sets a plain field, or appends to a list of plain values.
template <typename Value>
struct Store {
  using Way = void (Reflection::*)(ProtoMessage*, const FieldDescriptor*, Value) const;
  Way set;
  Way add;
  const char* accepted;

  std::optional<Refusal> operator()(ProtoMessage& message, const FieldDescriptor& field,
                                    std::string_view text) const {
    const std::optional<Value> value = Text<Value>::read(text);
    if (!value) return Refusal{accepted, Text<Value>::hint(text)};
    (message.GetReflection()->*(field.is_repeated() ? add : set))(&message, &field, *value);
    return std::nullopt;
  }
};

constexpr Store<std::int32_t> kInt32{&Reflection::SetInt32, &Reflection::AddInt32,
                                     "must be a whole number of at most 2147483647"};
constexpr Store<std::uint32_t> kUint32{&Reflection::SetUInt32, &Reflection::AddUInt32,
                                       "must be a whole number from 0 to 4294967295"};
constexpr Store<std::int64_t> kInt64{&Reflection::SetInt64, &Reflection::AddInt64,
                                     "must be a whole number"};
constexpr Store<std::uint64_t> kUint64{&Reflection::SetUInt64, &Reflection::AddUInt64,
                                       "must be a whole number from 0"};
constexpr Store<double> kDouble{&Reflection::SetDouble, &Reflection::AddDouble, "must be a number"};
constexpr Store<bool> kBool{&Reflection::SetBool, &Reflection::AddBool, "must be true or false"};

// Step is one part of a path: a field, and the index in a list.
struct Step {
  const FieldDescriptor* field = nullptr;
  std::optional<int> index;
};

struct StepOrProblem {
  Step step;
  std::string problem;
};

StepOrProblem read_step(const Descriptor& message, std::string_view text) {
  StepOrProblem result;
  std::string_view name = text;
  if (const std::size_t bracket = text.find('['); bracket != std::string_view::npos) {
    name = text.substr(0, bracket);
    std::string_view index = text.substr(bracket + 1);
    if (index.ends_with(']')) index.remove_suffix(1);
    result.step.index = number_in<int>(index);
    if (!text.ends_with(']') || !result.step.index || *result.step.index < 0) {
      result.problem = "the index of " + std::string(name) + " must be a whole number in brackets";
      return result;
    }
  }
  FieldOrProblem found = find_field(message, name);
  result.problem = std::move(found.problem);
  result.step.field = found.field;
  if (found.field != nullptr && result.step.index && !found.field->is_repeated()) {
    result.problem = std::string(name) + " is not a list and takes no index";
  }
  return result;
}

// Follows all steps except the last one and creates messages on the way. Returns a text if an index
// is too large.
std::optional<std::string> descend(ProtoMessage*& message, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    const Reflection& reflection = *message->GetReflection();
    if (!step.field->is_repeated()) {
      message = reflection.MutableMessage(message, step.field);
      continue;
    }
    const int size = reflection.FieldSize(*message, step.field);
    if (*step.index > size) {
      return step.field->name() + " has " + std::to_string(size) +
             " elements: index must be 0 to " + std::to_string(size) + " (which appends), is " +
             std::to_string(*step.index);
    }
    message = *step.index == size
                  ? reflection.AddMessage(message, step.field)
                  : reflection.MutableRepeatedMessage(message, step.field, *step.index);
  }
  return std::nullopt;
}

bool is_whole_number(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
}

constexpr std::size_t kMostShown = 200;          // of a value in a message
constexpr std::int64_t kMostElements = 1 << 20;  // of a list

// Reads "0-7" with both ends included; nullopt if the text is no such range.
std::optional<std::pair<std::int64_t, std::int64_t>> range_in(std::string_view text) {
  const std::size_t dash = text.find('-', 1);
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number_in<std::int64_t>(text.substr(0, dash));
  const auto last = number_in<std::int64_t>(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last - *first >= kMostElements) {
    return std::nullopt;
  }
  return std::pair(*first, *last);
}

std::optional<Refusal> add_elements(ProtoMessage& message, const FieldDescriptor& field,
                                    std::string_view text) {
  const auto range = is_whole_number(field) ? range_in(text) : std::nullopt;
  if (!range) return set_plain(message, field, text);
  for (std::int64_t value = range->first; value <= range->second; ++value) {
    if (auto refusal = set_plain(message, field, std::to_string(value))) return refusal;
  }
  return std::nullopt;
}

std::optional<Refusal> set_list(ProtoMessage& message, const FieldDescriptor& field,
                                std::string_view value) {
  message.GetReflection()->ClearField(&message, &field);
  for (const std::string_view part : split_text(value, ',')) {
    if (auto refusal = add_elements(message, field, part)) return refusal;
    if (message.GetReflection()->FieldSize(message, &field) > kMostElements) {
      return Refusal{"must be at most " + std::to_string(kMostElements) + " elements", ""};
    }
  }
  return std::nullopt;
}

// Says where the keys of a plan are listed, or lists the fields of a message without such a page.
std::string where_to_look(const Descriptor& message, const std::vector<std::string>& names,
                          bool is_suggested) {
  if (message.name() == "Plan") {
    return std::string(is_suggested ? "" : ";") + " `stepsim help plan` lists all keys";
  }
  return is_suggested ? "" : "; it has: " + comma_separated(names);
}

// Adds the path of every group under `message` that has a field of that name.
void find_groups(const ProtoMessage& message, const std::string& path, std::string_view name,
                 std::vector<std::string>& found) {
  if (message.GetDescriptor()->FindFieldByName(std::string(name)) != nullptr) {
    found.push_back(path);
  }
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (!is_message(*field)) continue;
    const std::string below = path + (path.empty() ? "" : ".") + field->name();
    if (!field->is_repeated()) {
      find_groups(reflection.GetMessage(message, field), below, name, found);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      find_groups(reflection.GetRepeatedMessage(message, field, i),
                  below + "[" + std::to_string(i) + "]", name, found);
    }
  }
}

// Returns the group at the end of a path; nullptr if it is not there, or no group.
const ProtoMessage* group_at(const ProtoMessage& root, std::string_view path) {
  const ProtoMessage* message = &root;
  if (path.empty()) return message;
  for (const std::string_view name : split_text(path, '.')) {
    const FieldOrProblem found = find_field(*message->GetDescriptor(), name);
    if (found.field == nullptr || !is_message(*found.field) || found.field->is_repeated() ||
        !message->GetReflection()->HasField(*message, found.field)) {
      return nullptr;
    }
    message = &message->GetReflection()->GetMessage(*message, found.field);
  }
  return message;
}

struct PathOrProblem {
  std::string path;
  std::string problem;
};

// Replaces two dots in a path by what lies between.
PathOrProblem filled_in(const ProtoMessage& root, std::string_view path) {
  const std::size_t dots = path.find("..");
  if (dots == std::string_view::npos) return {std::string(path), ""};
  const std::string_view rest = path.substr(dots + 2);
  const std::string name =
      with_underscores(rest.substr(0, std::min(rest.find('.'), rest.find('['))));
  std::vector<std::string> groups;
  const std::string start(path.substr(0, dots));
  if (const ProtoMessage* const group = group_at(root, start))
    find_groups(*group, start, name, groups);
  if (groups.size() == 1) {
    return {groups[0] + (groups[0].empty() ? "" : ".") + std::string(rest), ""};
  }
  const std::string what = shortened(name, kMostShown);
  if (groups.empty()) return {"", "no group of " + start + " that is there has a field " + what};
  return {"", "several groups have a field " + what + ", name one: " + comma_separated(groups)};
}

struct StepsOrProblem {
  std::vector<Step> steps;
  std::string problem;
};

StepsOrProblem read_path(const Descriptor& root, std::string_view path) {
  StepsOrProblem result;
  const Descriptor* message = &root;
  std::string_view rest = path;
  while (true) {
    const std::size_t dot = rest.find('.');
    StepOrProblem read = read_step(*message, rest.substr(0, dot));
    result.problem = std::move(read.problem);
    if (!result.problem.empty()) return result;
    const Step& step = result.steps.emplace_back(read.step);
    const std::string& name = step.field->name();
    if (dot == std::string_view::npos) {
      if (is_message(*step.field)) {
        result.problem = name + " is a group of fields, set one of them: ";
        result.problem += comma_separated(names_of_fields(*step.field->message_type()));
      } else if (step.index) {
        result.problem = name + " is set as a whole, separated by commas";
      }
      return result;
    }
    if (!is_message(*step.field)) {
      result.problem = name + " has no fields of its own";
    } else if (step.field->is_repeated() && !step.index) {
      result.problem = name + " is a list: say which element, as in ";
      result.problem.append(name).append("[0]");
    }
    if (!result.problem.empty()) return result;
    message = step.field->message_type();
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace

FieldOrProblem find_field(const Descriptor& message, std::string_view name) {
  const std::string wanted = with_underscores(name);
  if (const FieldDescriptor* field = message.FindFieldByName(wanted)) return {field, ""};
  const std::vector<std::string> names = names_of_fields(message);
  const std::string suggestion = did_you_mean(wanted, names);
  return {nullptr, "no field " + shortened(name, kMostShown) + " in " + message.name() +
                       suggestion + where_to_look(message, names, !suggestion.empty())};
}

std::optional<Refusal> set_plain(ProtoMessage& message, const FieldDescriptor& field,
                                 std::string_view text) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return kInt32(message, field, text);
    case FieldDescriptor::CPPTYPE_UINT32:
      return kUint32(message, field, text);
    case FieldDescriptor::CPPTYPE_INT64:
      return kInt64(message, field, text);
    case FieldDescriptor::CPPTYPE_UINT64:
      return kUint64(message, field, text);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return kDouble(message, field, text);
    case FieldDescriptor::CPPTYPE_BOOL:
      return kBool(message, field, text);
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.is_repeated()) {
        reflection.AddString(&message, &field, std::string(text));
      } else {
        reflection.SetString(&message, &field, std::string(text));
      }
      return std::nullopt;
    default:
      return Refusal{"cannot be set", ""};  // no other type is used in proto/*.proto
  }
}

std::string plain_text(const ProtoMessage& message, const FieldDescriptor& field, int index) {
  const Reflection& from = *message.GetReflection();
  const bool is_list = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(is_list ? from.GetRepeatedInt32(message, &field, index)
                                    : from.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(is_list ? from.GetRepeatedUInt32(message, &field, index)
                                    : from.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(is_list ? from.GetRepeatedInt64(message, &field, index)
                                    : from.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(is_list ? from.GetRepeatedUInt64(message, &field, index)
                                    : from.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return write_double(is_list ? from.GetRepeatedDouble(message, &field, index)
                                  : from.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return Text<bool>::write(is_list ? from.GetRepeatedBool(message, &field, index)
                                       : from.GetBool(message, &field));
    default:  // no other type is used in proto/*.proto
      return is_list ? from.GetRepeatedString(message, &field, index)
                     : from.GetString(message, &field);
  }
}

std::optional<std::string> set_field(ProtoMessage& root, std::string_view path,
                                     std::string_view value) {
  const PathOrProblem whole = filled_in(root, path);
  if (!whole.problem.empty()) return whole.problem;
  StepsOrProblem read = read_path(*root.GetDescriptor(), whole.path);
  if (!read.problem.empty()) return read.problem;
  const FieldDescriptor& field = *read.steps.back().field;
  read.steps.pop_back();
  // Tries a copy first: a field that cannot be set must not leave empty messages behind.
  const std::unique_ptr<ProtoMessage> copy(root.New());
  copy->CopyFrom(root);
  ProtoMessage* target = copy.get();
  if (auto problem = descend(target, read.steps)) return problem;
  const auto refusal =
      field.is_repeated() ? set_list(*target, field, value) : set_plain(*target, field, value);
  if (refusal)
    return refusal->accepted + ", is \"" + shortened(value, kMostShown) + "\"" + refusal->hint;
  root.GetReflection()->Swap(&root, copy.get());
  return std::nullopt;
}

void put_over(ProtoMessage& base, const ProtoMessage& changes) {
  const Reflection& reflection = *base.GetReflection();
  std::vector<const FieldDescriptor*> given;
  reflection.ListFields(changes, &given);
  for (const FieldDescriptor* field : given) {
    if (field->is_repeated()) {
      reflection.ClearField(&base, field);
    } else if (is_message(*field)) {
      put_over(*reflection.MutableMessage(&base, field), reflection.GetMessage(changes, field));
    }
  }
  // Plain fields and lists remain; the lists have just been emptied.
  const std::unique_ptr<ProtoMessage> plain(changes.New());
  plain->CopyFrom(changes);
  for (const FieldDescriptor* field : given) {
    if (is_message(*field) && !field->is_repeated()) reflection.ClearField(plain.get(), field);
  }
  base.MergeFrom(*plain);
}

}  // namespace stepsim
