// Measured collectives: each row runs as with `stepsim collective`, on the cluster that its
// hardware stands for. Columns: hardware, nodes, ranks, ranks_per_node, op, bytes (as in
// nccl-tests), time_us, dtype, algo (Ring or empty), source or source_id.

#pragma once

#include "analysis/accuracy/accuracy.h"

namespace stepsim {

std::vector<AccuracyRow> predict_collectives(const CsvTable& table,
                                             const std::vector<Hardware>& hardware,
                                             const PredictOptions& options);

}  // namespace stepsim
