// How texts and numbers are written in JSON.

#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// Makes a text fit to stand between the quotes of a JSON string.
std::string json_escaped(std::string_view text);

// The shortest decimal that reads back as the same double; null for what JSON has no number for.
std::string json_number(double value);

}  // namespace stepsim
