// The groups `plan`, `software` and `pass` of a file are read into one message of all keys, that of
// `plan`: what a catalog's software brings is of all three. Here are the ways in and out.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/experiment.pb.h"
#include "proto/messages/problem_list.h"
#include "schedules/plan/keys/key_groups.h"

namespace stepsim {

// Moves the keys of `software` and `pass` to `plan`. A key in a group that is not its own is a
// problem, but for those of `plan` that 0.1 had there. Returns these as moved_keys_in().
// `software.catalog` becomes the field `software` of the plan.
std::vector<std::string> join_groups(file::Experiment& message, ProblemList& problems);

// Returns the keys of `plan` that are of other groups: "plan.loss is software.loss".
std::vector<std::string> moved_keys_in(const file::Plan& plan);

// The other way round: each key in its group.
void split_groups(file::Experiment& message);

// Clears all keys of a group.
void clear_group(KeyGroup group, file::Plan& plan);

// Returns what is wrong with a key in that group, with its place: "is a key of software:
// software.loss, .."; "" if nothing is. `key` may have dashes.
std::string misplaced_key(std::string_view key, KeyGroup group);

struct JoinedPath {
  std::string path;     // "plan.loss" for "software.loss", others as they are
  std::string problem;  // as of misplaced_key()
};

// Returns where a path of --set lies in a joined message.
JoinedPath joined_path(std::string_view path);

}  // namespace stepsim
