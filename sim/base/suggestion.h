// What a person who misspelt a name may have meant.

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepsim {

// "; did you mean tp?" if a candidate is close to `name` (one edit in three letters, or the same
// letters but for case and dashes), otherwise nothing. The first of equally close ones wins.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

// The same and what else to say: "; did you mean zb_h1? There are: ...", or "; there are: ...".
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates,
                         std::string more);

// "a, b, c"
std::string comma_separated(std::span<const std::string> names);

}  // namespace stepsim
