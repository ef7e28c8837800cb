// json_escaped() makes a text fit to stand between the quotes of a JSON string.

#pragma once

#include <string>
#include <string_view>

namespace stepsim {

std::string json_escaped(std::string_view text);

}  // namespace stepsim
