// Rows of measured kernels (docs/measured-tables.md): each is one kernel of
// workload/parts/kernels.h, or a layer of experts, timed with the row's chip.
//
//   gemm                         [m, k] @ [k, n]
//   attention, attention_causal  fused, of training or of a prompt
//   add                          m x n values, two read and one written
//   decode_attention             over a cache, as tokens are generated
//   latent_decode                the same over latents (MLA)
//   experts                      a layer of experts, of the rank with the most tokens
//
// Serving kernels are measured in a loop: a captured graph is replayed on the same data, so keys,
// values and weights that fit in the second-level cache are found there. Attention includes the new
// key's way to the cache, and rotation where the library fuses it (TensorRT-LLM). A row of
// `experts` is a whole call: choosing experts from given logits, sorting, rounding, both matmuls,
// the activation and the sum; neither the router's matmul nor communication.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "measured/accuracy.h"
#include "sim/chips/chip_spec.h"
#include "sim/chips/expert_layer.h"
#include "sim/chips/kernel.h"

namespace stepsim {

struct MeasuredKernel {
  std::optional<Kernel> kernel{};
  std::optional<ExpertLayer> experts{};  // instead of a kernel
  // Values that the measured time includes making narrow first.
  std::optional<std::int64_t> quantized{};
  std::optional<AttentionLibrary> library{};  // of attention in training
  std::string problem{};                      // if there is neither
};

// The table must live as long as what comes out: it names libraries.
MeasuredKernel read_kernel(const CsvTable& table, std::size_t record);

// Returns why the chip can't run it with its constants; "" if it can.
std::string missing_on(const MeasuredKernel& measured, const ChipSpec& chip);

// Returns what the row's time is predicted to be. REQUIRES: missing_on() is "".
Duration time_of(const MeasuredKernel& measured, const ChipSpec& chip);

// Returns the row without a prediction, skipped if it has other cells than kernels have or no time.
AccuracyRow begin_kernel_row(const CsvTable& table, std::size_t record);

std::vector<AccuracyRow> predict_kernels(const CsvTable& table, const PredictOptions& options);

}  // namespace stepsim
