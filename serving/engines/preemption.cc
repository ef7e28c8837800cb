#include "serving/engines/preemption.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace stepsim {
namespace {

std::size_t victim_of(const EngineState& state) {
  const std::vector<RequestId>& running = state.running();
  if (state.options().batching.policy != QueuePolicy::kPriority) return running.size() - 1;
  const auto rank = [&state](RequestId request) {
    const Sequence& sequence = state.sequence(request);
    return std::tuple(sequence.priority, sequence.order);
  };
  const auto last =
      std::max_element(running.begin(), running.end(),
                       [&rank](RequestId a, RequestId b) { return rank(a) < rank(b); });
  return static_cast<std::size_t>(last - running.begin());
}

}  // namespace

bool make_room(EngineState& state, std::size_t& position, std::int64_t tokens) {
  const RequestId request = state.running()[position];
  while (!state.grow(request, tokens)) {
    const std::size_t victim = victim_of(state);
    if (victim < position) --position;
    if (state.preempt(victim) == request) return false;
  }
  return true;
}

void schedule_running(EngineState& state, bool decodes) {
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

std::int64_t watermark_blocks(const EngineState& state) {
  if (state.running().empty()) return 0;
  return static_cast<std::int64_t>(state.options().cache.watermark *
                                   static_cast<double>(state.kv().total()));
}

}  // namespace stepsim
