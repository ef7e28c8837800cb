// Measured training runs: each row becomes an experiment and is simulated as with `stepsim run`.
// Columns: docs/accuracy.md.

#pragma once

#include "analysis/accuracy/accuracy.h"

namespace stepsim {

std::vector<AccuracyRow> predict_training_runs(const CsvTable& table,
                                               const std::vector<Hardware>& hardware,
                                               const PredictOptions& options);

}  // namespace stepsim
