// `stepsim help plan`: the keys of --plan and when to change them.

#pragma once

#include <span>
#include <string>

namespace stepsim {

// Returns the help of all keys, or of each name in `keys`. "--markdown" alone returns the text of
// docs/plan-keys.md. Throws ConfigError for a key that does not exist.
std::string plan_help(std::span<const std::string> keys);

}  // namespace stepsim
