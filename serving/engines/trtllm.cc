#include "serving/engines/trtllm.h"

#include <algorithm>
#include <array>

#include "serving/engines/engine_fields.h"
#include "serving/engines/engine_table.h"
#include "serving/engines/preemption.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<CapacityPolicy> = kCapacityPolicies;

namespace {

class TrtllmEngine final : public Engine {
 public:
  void form(EngineState& state) override;

 private:
  static void admit_waiting(EngineState& state);
};

bool admits_whole_answers(const EngineOptions& options) {
  return own_options<TrtllmOptions>(options).capacity == CapacityPolicy::kNoEvict;
}

void TrtllmEngine::form(EngineState& state) {
  state.begin(state.options().batching.budget);
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
    const bool reserves = admits_whole_answers(options);
    // Drafts behind the last token need a place too.
    const std::int64_t answered = sequence.prompt + sequence.to_emit + options.speculation.drafts;
    if (state.is_to_fetch(request, hits)) {
      const std::int64_t wants = reserves ? answered : sequence.known();
      if (!state.fetch(0, hits, wants, state.kv().free())) return;
      continue;
    }
    const std::int64_t computed = std::int64_t{hits.blocks} * state.kv().block_tokens();
    const std::int64_t whole = sequence.known() - computed;
    const std::int64_t most = std::min(state.budget(), options.batching.budget_of_rank());
    if (!options.batching.chunked_prefill && whole > most) return;
    const std::int64_t tokens = std::min(whole, most);
    const std::int64_t holds = reserves ? answered : computed + tokens;
    if (state.blocks_wanted(holds, hits) > state.kv().free()) return;
    state.admit(0, hits, tokens, holds);
  }
}

EngineOptions trtllm_defaults() {
  EngineOptions options;
  options.batching.sequences = 2048;
  options.batching.chunked_prefill = false;
  options.cache.block = 32;
  options.own = TrtllmOptions{};
  return options;
}

constexpr std::string_view kTrtllmKeys[] = {
    "budget",     "chunked_prefill", "policy",     "prefix_cache", "drafts",     "accepted",
    "acceptance", "drafter",         "draft_time", "host_blocks",  "host_memory"};

void add_trtllm_fields(FieldTable<EngineOptions>& table) {
  table.add_of(
      &EngineOptions::own, "capacity", &TrtllmOptions::capacity, {},
      {.help = "trtllm: no-evict admits what surely ends; max-utilisation admits what fits "
               "now, and pauses requests."});
}

}  // namespace

std::string_view name_of(CapacityPolicy policy) {
  constexpr std::array<std::string_view, kCapacityPolicies> kNames = {"no-evict",
                                                                      "max-utilisation"};
  return kNames[static_cast<std::size_t>(policy)];
}

EngineRow trtllm_engine() {
  return {.name = "trtllm",
          .summary = "TensorRT-LLM: decodes first, whole prompts behind them",
          .defaults = trtllm_defaults(),
          .keys = kTrtllmKeys,
          .add_own_fields = add_trtllm_fields,
          .make = make_engine<TrtllmEngine>,
          .reserves_answer = admits_whole_answers};
}

}  // namespace stepsim
