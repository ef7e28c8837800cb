#include "serving/engines/trtllm.h"

#include <algorithm>

#include "serving/engines/preemption.h"

namespace stepsim {

void TrtllmEngine::form(EngineState& state) {
  state.begin(state.options().budget);
  schedule_running(state, true);
  schedule_running(state, false);
  if (state.batch().preempted.empty()) admit_waiting(state);
}

void TrtllmEngine::admit_waiting(EngineState& state) {
  const EngineOptions& options = state.options();
  while (!state.waiting().empty() && state.budget() > 0 && state.has_room()) {
    const RequestId request = state.waiting().front();
    const Sequence& sequence = state.sequence(request);
    const KvPool::Hits hits = state.find_hits(request);
    const bool reserves = options.capacity == CapacityPolicy::kNoEvict;
    // Drafts behind the last token need a place too.
    const std::int64_t answered = sequence.prompt + sequence.to_emit + options.drafts;
    if (state.is_to_fetch(request, hits)) {
      const std::int64_t wants = reserves ? answered : sequence.known();
      if (!state.fetch(0, hits, wants, state.kv().free())) return;
      continue;
    }
    const std::int64_t computed = std::int64_t{hits.blocks} * state.kv().block_tokens();
    const std::int64_t whole = sequence.known() - computed;
    if (!options.chunked_prefill && whole > state.budget()) return;
    const std::int64_t tokens = std::min(whole, state.budget());
    const std::int64_t holds = reserves ? answered : computed + tokens;
    if (state.blocks_wanted(holds, hits) > state.kv().free()) return;
    state.admit(0, hits, tokens, holds);
  }
}

}  // namespace stepsim
