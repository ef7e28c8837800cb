// Measured serving runs: each row is served as with `stepsim serve`, and its mean time a token,
// mean time to the first token and tokens a second and chip are compared. Columns:
// docs/accuracy.md.

#pragma once

#include "analysis/accuracy/accuracy.h"

namespace stepsim {

std::vector<AccuracyRow> predict_served_runs(const CsvTable& table,
                                             const std::vector<Hardware>& hardware,
                                             const PredictOptions& options);

}  // namespace stepsim
