// Measured kernels: each row is one kernel of workload/kernels.h, timed with the chip that its
// hardware stands for. Columns: hardware, op, phase, dtype, m, n, k, batch, seq_q, seq_kv, heads,
// kv_heads, head_dim, time_us, source or source_id; of attention in training also library
// (`stepsim help chip`, efficiency.attention_of).
//
//   gemm...                [m, k] @ [k, n]; grouped ones are skipped
//   attention..._causal    fused, forward or backward by `phase`
//   element-wise kernels of a block, by name: norms, activations, rotations, additions

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/accuracy/accuracy.h"
#include "sim/chips/chip_spec.h"
#include "sim/chips/kernel.h"

namespace stepsim {

struct MeasuredKernel {
  std::optional<Kernel> kernel;
  // Values that the measured time includes making narrow first.
  std::optional<std::int64_t> quantized{};
  std::optional<AttentionLibrary> library{};  // of attention in training
  std::string problem;                        // if there is no kernel
};
MeasuredKernel read_kernel(const CsvTable& table, std::size_t record);

// Returns what the row's time is predicted to be. REQUIRES: measured.kernel; the chip computes in
// its type.
Duration time_of(const MeasuredKernel& measured, const ChipSpec& chip);

std::vector<AccuracyRow> predict_kernels(const CsvTable& table,
                                         const std::vector<Hardware>& hardware,
                                         const PredictOptions& options);

}  // namespace stepsim
