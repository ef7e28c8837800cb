// One pass of inference, which a plan may compute in place of a training step. pass_fields.cc says
// what each key does.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/chips/kernel.h"
#include "workload/inference.h"
#include "workload/parts/pass_themes.h"

namespace stepsim {

// What a plan computes: a training step, or a pass of inference.
enum class Inference : std::uint8_t {
  kNone,     // training
  kPrefill,  // prompts, or further tokens of them
  kDecode,   // the next token of each request
};
inline constexpr std::size_t kInferences = 3;
std::string_view name_of(Inference inference);  // "decode"

// InferencePass is one pass of inference: inference_plan.h.
struct InferencePass {
  Inference inference = Inference::kNone;
  std::int64_t context = 0;         // tokens of each request after the pass; 0: not given
  std::int64_t prefill_tokens = 0;  // new tokens of one more request, beside those that generate
  std::int64_t prefill_context = 0;
  std::int64_t pass_microbatches = 1;  // parts of a pass that take turns on both kinds of chips
  std::optional<DataType> expert_weight_type{};  // unset: as other weights
  std::optional<DataType> expert_type{};  // in which experts compute; unset: as other matmuls
  double expert_spread = 1;               // the most popular expert over the least (expert_layer.h)
  std::optional<RequestBatch> own_requests{};  // of a replica, instead of what the keys say
};

}  // namespace stepsim
