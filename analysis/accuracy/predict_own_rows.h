// Predicts the rows of a table of measured runs in the program's own keys (run_rows.h), of kernels
// and of collectives. docs/measured-tables.md has the columns.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/accuracy/accuracy.h"

namespace stepsim {

// Whether a table is in the program's own keys: it has a column that begins with `measured.`.
bool is_in_own_keys(const CsvTable& table);

std::vector<AccuracyRow> predict_own_rows(const CsvTable& table, const PredictOptions& options);

// Returns a header with a row, as a table may begin; "" if there is no such kind. Kinds: training,
// serving, collectives, kernels.
std::string_view table_template(std::string_view kind);

}  // namespace stepsim
