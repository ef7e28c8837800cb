#include "serving/engines/vllm.h"

#include <algorithm>

#include "serving/engines/engine_table.h"
#include "serving/engines/preemption.h"

namespace stepsim {
namespace {

class VllmEngine final : public Engine {
 public:
  void form(EngineState& state) override;

 private:
  static void schedule_running(EngineState& state);
  static void admit_waiting(EngineState& state);
};

void VllmEngine::form(EngineState& state) {
  state.begin(state.options().batching.budget);
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
    const std::int64_t computed = std::int64_t{hits.blocks} * options.cache.block;
    std::int64_t tokens =
        std::min(known - computed, options.batching.long_prefill_threshold.value_or(known));
    const std::int64_t most = std::min(state.budget(), options.batching.budget_of_rank());
    if (!options.batching.chunked_prefill && tokens > most) return;
    tokens = std::min(tokens, most);
    const std::int64_t room = state.kv().free() - watermark_blocks(state);
    if (options.cache.reserve_whole_sequence && state.blocks_wanted(known, hits) > room) return;
    if (state.blocks_wanted(computed + tokens, hits) > room) return;
    state.admit(0, hits, tokens, computed + tokens);
  }
}

constexpr std::string_view kVllmKeys[] = {"budget",
                                          "chunked_prefill",
                                          "long_prefill_threshold",
                                          "policy",
                                          "async",
                                          "prefix_cache",
                                          "reserve_whole_sequence",
                                          "watermark",
                                          "drafts",
                                          "accepted",
                                          "acceptance",
                                          "drafter",
                                          "draft_time",
                                          "host_blocks",
                                          "host_memory"};

}  // namespace

EngineRow vllm_engine() {
  return {.name = "vllm",
          .summary = "vLLM v1: running requests first, chunks of prompts beside decodes",
          .keys = kVllmKeys,
          .make = make_engine<VllmEngine>,
          .reserves_answer = reserves_never};
}

}  // namespace stepsim
