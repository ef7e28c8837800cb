#include "serving/engines/sarathi.h"

#include <algorithm>

#include "serving/engines/engine_table.h"
#include "serving/engines/preemption.h"

namespace stepsim {
namespace {

class SarathiEngine final : public Engine {
 public:
  void form(EngineState& state) override;
};

void admit_prompts(EngineState& state) {
  while (!state.waiting().empty() && state.budget() > 0 && state.has_room()) {
    const RequestId request = state.waiting().front();
    const std::int64_t known = state.sequence(request).known();
    if (state.kv().whole_of(known) + watermark_blocks(state) > state.kv().free()) return;
    const std::int64_t most = std::min(state.budget(), state.options().batching.budget_of_rank());
    state.admit(0, {}, std::min(known, most), known);
  }
}

void SarathiEngine::form(EngineState& state) {
  state.begin(state.options().batching.budget);
  schedule_running(state, true);
  schedule_running(state, false);
  if (state.batch().preempted.empty()) admit_prompts(state);
}

constexpr std::string_view kSarathiKeys[] = {"budget", "watermark"};

EngineOptions sarathi_defaults() {
  EngineOptions options;
  options.batching.budget = 512;
  options.batching.sequences = 128;
  options.cache.prefix_cache = false;
  options.cache.watermark = 0.01;
  return options;
}

}  // namespace

EngineRow sarathi_engine() {
  return {.name = "sarathi",
          .summary = "Sarathi-Serve: decodes first, chunks up to a small budget",
          .defaults = sarathi_defaults(),
          .keys = kSarathiKeys,
          .make = make_engine<SarathiEngine>,
          .reserves_answer = reserves_never};
}

}  // namespace stepsim
