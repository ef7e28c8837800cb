// Finds the name that a person who misspelt one may have meant.

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stepsim {

// Returns "; did you mean tp?" if a candidate is close to `name`, otherwise "". Close means one
// edit per three letters, or a difference only in case and dashes. The first of equally close
// candidates wins. If none is close: "; did you mean zbv_hand or zbv_auto?", those of which `name`
// is the beginning, if they are at most four.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

// The same and what else to say: "; did you mean zb_h1? There are: ...", or "; there are: ...".
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates,
                         std::string more);

// "a, b, c"
std::string comma_separated(std::span<const std::string> names);

}  // namespace stepsim
