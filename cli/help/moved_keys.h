// What a command says of files that have keys where 0.1 had them.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Says on standard error that keys of a file are in another group now: "plan.loss is
// software.loss". docs/versioning.md says how long they are read. Nothing is said of none.
void say_moved_keys(const std::string& file, const std::vector<std::string>& moved);

}  // namespace stepsim
