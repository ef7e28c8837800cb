// Writes a subcommand's answer to standard output.

#pragma once

#include <string_view>

namespace stepsim {

// Writes all of `text`. Throws OutputError if that fails.
void print(std::string_view text);

}  // namespace stepsim
