// What a person who misspelt a name may have meant.

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepsim {

// "; did you mean tp?" if a candidate is close to `name` (one edit in three letters, or the same
// letters but for case and dashes), otherwise nothing. The first of equally close ones wins.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

// "a, b, c"
std::string comma_separated(std::span<const std::string> names);

}  // namespace stepsim
