// Sequence is what an engine knows about one request while it serves it.
//
// `computed` counts the tokens in the KV cache, those of the step that runs included; `known` the
// tokens that can be computed: the prompt and what was emitted. In a step of asynchronous
// scheduling tokens may be `in_flight`: they will be known when the step ends.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "serving/kv/kv_pool.h"
#include "serving/requests/request.h"

namespace stepsim {

struct Sequence {
  std::int32_t prompt = 0;
  std::int32_t to_emit = 0;  // tokens of the whole answer
  std::int32_t emitted = 0;
  std::int32_t in_flight = 0;  // a token, and the drafts that may join it
  std::int32_t computed = 0;
  std::int32_t preemptions = 0;
  std::int32_t priority = 0;
  std::int32_t prefix_tokens = 0;
  PrefixId prefix{};
  const PromptChain* chain = nullptr;
  std::uint32_t order = 0;  // of arrival at this replica
  bool is_running = false;
  std::int32_t fetched = 0;   // blocks that came from the host for the next admission
  std::int32_t promised = 0;  // blocks beyond those that came from the host
  KvHolding holding{};

  std::int32_t known() const { return prompt + emitted + in_flight; }
  bool is_done() const { return emitted >= to_emit; }
  // A request that surely ends with the step in flight is left out of the next.
  bool surely_ends() const { return emitted + std::min(in_flight, 1) >= to_emit; }
};

}  // namespace stepsim
