#pragma once

#include <string_view>

namespace stepsim {

std::string_view version();  // "0.1.0", from CMakeLists.txt

}  // namespace stepsim
