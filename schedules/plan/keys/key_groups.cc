#include "schedules/plan/keys/key_groups.h"

#include <algorithm>
#include <iterator>

#include "sim/fields/key_spelling.h"

namespace stepsim {

std::string_view name_of(KeyGroup group) {
  constexpr std::array<std::string_view, kKeyGroups.size()> kNames = {"plan", "software", "pass"};
  return kNames[static_cast<std::size_t>(group)];
}

const FieldTable<ParallelPlan>& fields_of(KeyGroup group) {
  switch (group) {
    case KeyGroup::kSoftware:
      return software_fields();
    case KeyGroup::kPass:
      return pass_fields();
    case KeyGroup::kPlan:
      break;
  }
  return plan_fields();
}

std::optional<KeyGroup> group_of(std::string_view key) {
  for (const KeyGroup group : kKeyGroups) {
    if (fields_of(group).find(key) != nullptr) return group;
  }
  return std::nullopt;
}

const AnyField* find_key(std::string_view key) {
  const std::optional<KeyGroup> group = group_of(key);
  return group ? fields_of(*group).find(key) : nullptr;
}

const std::vector<const AnyField*>& all_keys() {
  static const std::vector<const AnyField*> kKeys = [] {
    std::vector<const AnyField*> keys;
    for (const KeyGroup group : kKeyGroups) {
      for (const auto& field : fields_of(group).fields()) keys.push_back(field.get());
    }
    return keys;
  }();
  return kKeys;
}

std::string path_of_key(std::string_view key) {
  const std::string_view name = key.substr(0, key.find_first_of(".["));
  return std::string(name_of(group_of(name).value_or(KeyGroup::kPlan))) + "." + std::string(key);
}

WrittenKey written_key(std::string_view text) {
  const std::string given = with_underscores(text);
  WrittenKey written{.key = given.substr(given.find('.') + 1), .group = {}};  // all without a dot
  written.group = group_of(written.key);
  const std::string path = path_of_key(written.key);
  written.has_group = given == path;
  const bool is_bare = given == written.key && written.group == KeyGroup::kPlan;
  if (written.group && !written.has_group && !is_bare) written.meant = path;
  return written;
}

std::vector<FieldValue> keys_in_force(const ParallelPlan& plan) {
  std::vector<FieldValue> values;
  for (const KeyGroup group : kKeyGroups) {
    std::ranges::move(fields_of(group).in_force(plan), std::back_inserter(values));
  }
  return values;
}

std::vector<FieldValue> changed_keys(const ParallelPlan& plan, const ParallelPlan& usual) {
  return differing(keys_in_force(plan), keys_in_force(usual));
}

std::vector<Problem> problems_of_keys(const ParallelPlan& plan) {
  std::vector<Problem> problems;
  for (const KeyGroup group : kKeyGroups) {
    std::ranges::move(fields_of(group).problems(plan), std::back_inserter(problems));
  }
  return problems;
}

std::vector<Problem> with_groups(std::vector<Problem> problems) {
  for (Problem& problem : problems) problem.field = path_of_key(problem.field);
  return problems;
}

}  // namespace stepsim
