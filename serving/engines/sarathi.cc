#include "serving/engines/sarathi.h"

#include <algorithm>

#include "serving/engines/preemption.h"

namespace stepsim {
namespace {

void schedule_those(EngineState& state, bool decodes) {
  for (std::size_t i = 0; i < state.running().size() && state.budget() > 0; ++i) {
    const RequestId request = state.running()[i];
    const Sequence& sequence = state.sequence(request);
    if (sequence.is_done() || EngineState::is_decoding(sequence) != decodes) continue;
    const std::int64_t tokens = state.tokens_in_budget(sequence);
    if (tokens <= 0) continue;
    if (!make_room(state, i, tokens)) return;
    state.schedule(request, tokens);
  }
}

void admit_prompts(EngineState& state) {
  while (!state.waiting().empty() && state.budget() > 0 && state.has_room()) {
    const RequestId request = state.waiting().front();
    const std::int64_t known = state.sequence(request).known();
    if (state.kv().blocks_of(known) + watermark_blocks(state) > state.kv().free()) return;
    state.admit(0, {}, std::min(known, state.budget()), known);
  }
}

}  // namespace

void SarathiEngine::form(EngineState& state) {
  state.begin(state.options().budget);
  schedule_those(state, true);
  schedule_those(state, false);
  if (state.batch().preempted.empty()) admit_prompts(state);
}

}  // namespace stepsim
