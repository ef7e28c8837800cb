// The columns of measured tables, of which accuracy.h's unknown_columns() knows the names.

#pragma once

#include <string_view>

namespace stepsim {

// Returns whether a column of a table of training runs says something about the run, and not about
// its source or what was measured.
bool describes_run(std::string_view column);

// Returns whether a field says nothing: "", "-", "n/a", "?", "unknown", "not stated" and what
// begins with one of the last two.
bool is_blank(std::string_view text);

}  // namespace stepsim
