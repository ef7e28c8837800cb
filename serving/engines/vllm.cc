#include "serving/engines/vllm.h"

#include <algorithm>

#include "serving/engines/preemption.h"

namespace stepsim {
void VllmEngine::form(EngineState& state) {
  state.begin(state.options().budget);
  schedule_running(state);
  if (state.batch().preempted.empty()) admit_waiting(state);
}

void VllmEngine::schedule_running(EngineState& state) {
  for (std::size_t position = 0; position < state.running().size() && state.budget() > 0;
       ++position) {
    const RequestId request = state.running()[position];
    const Sequence& sequence = state.sequence(request);
    if (sequence.surely_ends()) continue;
    const std::int64_t tokens = state.tokens_in_budget(sequence);
    if (tokens <= 0) continue;
    if (!make_room(state, position, tokens)) return;
    state.schedule(request, tokens);
  }
}

void VllmEngine::admit_waiting(EngineState& state) {
  const EngineOptions& options = state.options();
  while (!state.waiting().empty() && state.budget() > 0 && state.has_room()) {
    const RequestId request = state.waiting().front();
    const std::int64_t known = state.sequence(request).known();
    const KvPool::Hits hits = state.find_hits(request);
    if (state.is_to_fetch(request, hits)) {
      if (!state.fetch(0, hits, known, state.kv().free() - watermark_blocks(state))) return;
      continue;
    }
    const std::int64_t computed = std::int64_t{hits.blocks} * options.block;
    std::int64_t tokens =
        std::min(known - computed, options.long_prefill_threshold.value_or(known));
    if (!options.chunked_prefill && tokens > state.budget()) return;
    tokens = std::min(tokens, state.budget());
    const std::int64_t room = state.kv().free() - watermark_blocks(state);
    if (options.reserve_whole_sequence && state.blocks_wanted(known, hits) > room) return;
    if (state.blocks_wanted(computed + tokens, hits) > room) return;
    state.admit(0, hits, tokens, computed + tokens);
  }
}

}  // namespace stepsim
