// Measured kernels: each row is one kernel of workload/kernels.h, timed with the chip that its
// hardware stands for. Columns: hardware, op, phase, dtype, m, n, k, batch, seq_q, seq_kv, heads,
// kv_heads, head_dim, time_us, source or source_id.
//
//   gemm...                [m, k] @ [k, n]; grouped ones are skipped
//   attention..._causal    fused, forward or backward by `phase`
//   element-wise kernels of a block, by name: norms, activations, rotations, additions

#pragma once

#include "analysis/accuracy/accuracy.h"

namespace stepsim {

std::vector<AccuracyRow> predict_kernels(const CsvTable& table,
                                         const std::vector<Hardware>& hardware,
                                         const PredictOptions& options);

}  // namespace stepsim
