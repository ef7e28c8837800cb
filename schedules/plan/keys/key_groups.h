// Keys of a plan are of three groups, by the question that each answers:
//
//   plan       how the work is divided: what a person, or a search, chooses       tp, schedule,
//   zero software   how it is run: what a release of a training or serving software brings    loss,
//   cuda_graphs pass       what one pass of inference computes batch, context
//
// A key has one name in all of the program; in files, on the command line and in results it stands
// in its group. What 0.1 had in `plan` is still read from files (proto/key_groups_of_files.h).

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/base/error.h"
#include "sim/fields/field.h"

namespace stepsim {

enum class KeyGroup : std::uint8_t { kPlan, kSoftware, kPass };
inline constexpr std::array kKeyGroups = {KeyGroup::kPlan, KeyGroup::kSoftware, KeyGroup::kPass};
std::string_view name_of(KeyGroup group);  // "software"

const FieldTable<ParallelPlan>& plan_fields();
const FieldTable<ParallelPlan>& software_fields();
const FieldTable<ParallelPlan>& pass_fields();
const FieldTable<ParallelPlan>& fields_of(KeyGroup group);

// Returns the group of a key; nullopt: there is no such key.
std::optional<KeyGroup> group_of(std::string_view key);
const AnyField* find_key(std::string_view key);  // of any group; nullptr: there is none
const std::vector<const AnyField*>& all_keys();  // group by group

// Returns the key with its group: "software.loss". A key of no group is one of the plan.
std::string path_of_key(std::string_view key);

// WrittenKey is a key as somebody wrote it where keys of all groups may stand: with its group, or
// bare if it is one of the plan.
struct WrittenKey {
  std::string key;                // without its group
  std::optional<KeyGroup> group;  // nullopt: there is no such key
  bool has_group = false;
  // Empty: it stands as it should. Otherwise how it should be written: "software.loss".
  std::string meant{};
};
WrittenKey written_key(std::string_view text);  // with dashes or underscores

// Returns the keys that have a value, group by group, and those that differ from `usual`.
std::vector<FieldValue> keys_in_force(const ParallelPlan& plan);
std::vector<FieldValue> changed_keys(const ParallelPlan& plan, const ParallelPlan& usual = {});

// Returns a problem for every key outside its limits. Fields are keys, without their groups.
std::vector<Problem> problems_of_keys(const ParallelPlan& plan);

// Returns the problems of keys with their groups in front: "tp" becomes "plan.tp".
std::vector<Problem> with_groups(std::vector<Problem> problems);

}  // namespace stepsim
