// Measured kernels of serving libraries: each row is attention over a cache as tokens are
// generated, or a layer of experts, timed with the chip that its name stands for. Columns: chip,
// table, framework, kernel, dtype, kv_dtype, latency_ms and
//
//   generation_attention   batch, isl (queries a sequence), step (keys before), heads, kv_heads,
//                          head_dim, window
//   generation_mla         batch, isl, step, heads
//   moe                    tokens, hidden, inter, topk, experts, moe_tp, moe_ep, distribution
//                          ("balanced", "power_law_1.01")
//
// They are those of the tables of ai-dynamo/aiconfigurator@095f58a5 (collector/). There, a time is
// that of one captured graph that is replayed on the same data: keys, values and weights that fit
// in the second-level cache are found there. Attention includes rotation and the new key's way to
// the cache where the library fuses them (TensorRT-LLM), without the rotation in vLLM. A row of
// `moe` is a whole FusedMoE call: choosing experts from given logits, sorting, quantising, both
// matmuls, the activation and the sum; neither the router's matmul nor communication. With moe_ep
// above 1 it is the rank with the most tokens, of all tokens of the group.

#pragma once

#include "analysis/accuracy/accuracy.h"

namespace stepsim {

// A row's source_id is its table, library, chip and types, so that summaries are by those.
std::vector<AccuracyRow> predict_serving_kernels(const CsvTable& table,
                                                 const std::vector<Hardware>& hardware,
                                                 const PredictOptions& options);

}  // namespace stepsim
