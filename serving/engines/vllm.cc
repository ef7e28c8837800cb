#include "serving/engines/vllm.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace stepsim {
namespace {

// Blocks that waiting requests must leave free.
std::int64_t watermark_blocks(const EngineState& state) {
  if (state.running().empty()) return 0;
  return static_cast<std::int64_t>(state.options().watermark *
                                   static_cast<double>(state.kv().total()));
}

std::size_t victim_of(const EngineState& state) {
  const std::vector<RequestId>& running = state.running();
  if (state.options().policy != QueuePolicy::kPriority) return running.size() - 1;
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

void VllmEngine::form(EngineState& state) {
  state.begin(state.options().budget);
  schedule_running(state);
  if (state.batch().preempted.empty()) admit_waiting(state);
}

// Preempts until the blocks are free. Returns false if the request itself had to go. A victim that
// stood before the request moves its position.
bool VllmEngine::make_room(EngineState& state, std::size_t& position, std::int64_t tokens) {
  const RequestId request = state.running()[position];
  while (!state.grow(request, tokens)) {
    const std::size_t victim = victim_of(state);
    if (victim < position) --position;
    if (state.preempt(victim) == request) return false;
  }
  return true;
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
