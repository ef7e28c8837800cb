#include "serving/engines/sarathi.h"

#include <algorithm>

#include "serving/engines/preemption.h"

namespace stepsim {
namespace {

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
  schedule_running(state, true);
  schedule_running(state, false);
  if (state.batch().preempted.empty()) admit_prompts(state);
}

}  // namespace stepsim
