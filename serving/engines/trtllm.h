// TensorRT-LLM's scheduler (batch_manager: capacity scheduler, then micro-batch scheduler).
//
// capacity=no-evict: a request is admitted if the blocks of its prompt and its whole answer are
// free; nobody is ever paused. capacity=max-utilisation: blocks are taken as they are needed, and
// who finds none pauses the request that was started last. Then decodes go first into the `budget`
// of a step, and prompts behind them, whole ones unless chunked_prefill is on.

#pragma once

#include <cstddef>
#include <string_view>

namespace stepsim {

// CapacityPolicy is what requests are admitted by.
enum class CapacityPolicy { kNoEvict, kMaxUtilisation };
inline constexpr std::size_t kCapacityPolicies = 2;
std::string_view name_of(CapacityPolicy policy);

struct TrtllmOptions {
  CapacityPolicy capacity = CapacityPolicy::kNoEvict;
};

struct EngineRow;
EngineRow trtllm_engine();

}  // namespace stepsim
