#include "proto/key_groups_of_files.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

using google::protobuf::FieldDescriptor;

constexpr std::string_view kCatalog = "catalog";    // of each group
constexpr std::string_view kSoftware = "software";  // the software's catalog, in a joined message

std::optional<KeyGroup> group_named(std::string_view name) {
  const auto* const found =
      std::ranges::find(kKeyGroups, name, [](KeyGroup group) { return name_of(group); });
  return found == kKeyGroups.end() ? std::nullopt : std::optional(*found);
}

// The group that a field of a joined message is of; an unknown one is of the plan.
KeyGroup group_of_field(const std::string& name) {
  if (name == kSoftware) return KeyGroup::kSoftware;
  return group_of(name).value_or(KeyGroup::kPlan);
}

// Where a key stands: "software.loss".
std::string place_of(const std::string& name) {
  return name == kSoftware ? "software.catalog" : path_of_key(name);
}

std::vector<const FieldDescriptor*> fields_set(const file::Plan& plan) {
  std::vector<const FieldDescriptor*> fields;
  plan.GetReflection()->ListFields(plan, &fields);
  return fields;
}

// Reports the keys that are not of the group. The group is then left out.
bool check_group(const file::Plan& keys, KeyGroup group, ProblemList& problems) {
  bool good = true;
  for (const FieldDescriptor* const field : fields_set(keys)) {
    const std::string problem = misplaced_key(field->name(), group);
    if (problem.empty()) continue;
    problems.add(std::string(name_of(group)) + "." + field->name(), problem);
    good = false;
  }
  return good;
}

}  // namespace

std::string misplaced_key(std::string_view key, KeyGroup group) {
  const std::string name = with_underscores(key);
  if (name == kCatalog) {
    return group == KeyGroup::kPass ? "is no key of a pass, which the catalog does not have" : "";
  }
  const std::optional<KeyGroup> own =
      name == kSoftware ? std::optional(KeyGroup::kSoftware) : group_of(name);
  if (own == group && name != kSoftware) return "";
  if (!own) return "";  // an unknown field, as which it is reported
  if (name == kSoftware) return "is " + place_of(name) + ": --software NAME";
  return "is a key of " + std::string(name_of(*own)) + ": " + place_of(name) + ", or --" +
         std::string(name_of(*own)) + " " + name + "=..";
}

std::vector<std::string> moved_keys_in(const file::Plan& plan) {
  std::vector<std::string> moved;
  for (const FieldDescriptor* const field : fields_set(plan)) {
    if (group_of_field(field->name()) == KeyGroup::kPlan) continue;
    moved.push_back("plan." + field->name() + " is " + place_of(field->name()));
  }
  return moved;
}

std::vector<std::string> join_groups(file::Experiment& message, ProblemList& problems) {
  std::vector<std::string> moved = moved_keys_in(message.plan());
  if (message.has_software()) {
    file::Plan& software = *message.mutable_software();
    const bool good = check_group(software, KeyGroup::kSoftware, problems);
    if (software.has_catalog()) software.set_software(software.catalog());
    software.clear_catalog();
    if (good) message.mutable_plan()->MergeFrom(software);
    message.clear_software();
  }
  if (message.has_pass()) {
    const bool good = check_group(message.pass(), KeyGroup::kPass, problems);
    if (good) message.mutable_plan()->MergeFrom(message.pass());
    message.clear_pass();
  }
  return moved;
}

void clear_group(KeyGroup group, file::Plan& plan) {
  for (const FieldDescriptor* const field : fields_set(plan)) {
    if (group_of_field(field->name()) == group) plan.GetReflection()->ClearField(&plan, field);
  }
}

void split_groups(file::Experiment& message) {
  file::Plan all;
  all.Swap(message.mutable_plan());
  const auto part = [&all](KeyGroup group) {
    file::Plan keys = all;
    for (const KeyGroup other : kKeyGroups) {
      if (other != group) clear_group(other, keys);
    }
    return keys;
  };
  *message.mutable_plan() = part(KeyGroup::kPlan);
  file::Plan software = part(KeyGroup::kSoftware);
  if (software.has_software()) software.set_catalog(software.software());
  software.clear_software();
  if (!fields_set(software).empty()) *message.mutable_software() = std::move(software);
  file::Plan pass = part(KeyGroup::kPass);
  if (!fields_set(pass).empty()) *message.mutable_pass() = std::move(pass);
}

JoinedPath joined_path(std::string_view path) {
  const std::size_t dot = path.find('.');
  const std::optional<KeyGroup> group = group_named(path.substr(0, dot));
  if (!group || dot == std::string_view::npos) return {std::string(path), ""};
  const std::string_view key = path.substr(dot + 1);
  if (std::string problem = misplaced_key(key, *group); !problem.empty()) return {"", problem};
  if (*group == KeyGroup::kSoftware && key == kCatalog) return {"plan.software", ""};
  return {"plan." + std::string(key), ""};
}

}  // namespace stepsim
