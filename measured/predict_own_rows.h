// Predicts the rows of a table of measured runs in the program's own keys (run_rows.h), of kernels
// and of collectives. docs/measured-tables.md has the columns.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "measured/accuracy.h"

namespace stepsim {

// Returns a header with a row, as a table may begin; "" if there is no such kind. Kinds: training,
// serving, collectives, kernels.
std::string_view table_template(std::string_view kind);

}  // namespace stepsim
