// Writes texts and numbers in JSON.

#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// Escapes a text so that it can stand between the quotes of a JSON string. Bytes that are no UTF-8
// become U+FFFD, and hidden characters \u202e (sim/base/shown_text.h).
std::string json_escaped(std::string_view text);

// Returns the shortest decimal that reads back as the same double; "null" for infinities and NaN.
std::string json_number(double value);

}  // namespace stepsim
