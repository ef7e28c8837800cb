// Reads the keys of a group from one line of the command line:
// "tp=8,pp=4,dp=16,microbatch=1,global-batch=1024" of
// --plan, "loss=separate" of --software, "decode,batch=64" of --pass, whose first word is the kind
// of pass. Keys are the fields of proto/plan.proto, with dashes.

#pragma once

#include <string>
#include <string_view>

#include "proto/messages/problem_list.h"
#include "proto/plan.pb.h"
#include "schedules/plan/keys/key_groups.h"

namespace stepsim {

// Sets the keys of `text` in `plan`, over its earlier values. A key of another group is a problem,
// which says how it is given.
void read_keys_text(std::string_view text, KeyGroup group, file::Plan& plan, ProblemList& problems);

// KeyTexts are lines of keys, one for each group.
struct KeyTexts {
  std::string plan{};
  std::string software{};
  std::string pass{};
};

// Returns the keys of a line by their groups, which they may have in front:
// "tp=8,software.loss=fused". What is no key stays in the plan's.
KeyTexts split_keys_text(std::string_view text);

}  // namespace stepsim
