// `stepsim help plan`: what the keys of --plan do and when to change them.

#pragma once

#include <span>
#include <string>

namespace stepsim {

// All keys, or one for each name in `keys`; "--markdown" alone is the text of docs/plan-keys.md.
// Throws ConfigError for a key that isn't there.
std::string plan_help(std::span<const std::string> keys);

}  // namespace stepsim
