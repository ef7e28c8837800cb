#include "serving/engines/orca.h"

#include <limits>

namespace stepsim {

void OrcaEngine::form(EngineState& state) {
  state.begin(std::numeric_limits<std::int64_t>::max());
  schedule_all_running(state);
  admit_with_reserve(state);
}

void schedule_all_running(EngineState& state) {
  for (const RequestId request : state.running()) {
    const Sequence& sequence = state.sequence(request);
    if (!sequence.is_done()) state.schedule(request, sequence.known() - sequence.computed);
  }
}

void admit_with_reserve(EngineState& state) {
  while (!state.waiting().empty() && state.has_room()) {
    const Sequence& sequence = state.sequence(state.waiting().front());
    const std::int64_t holds = std::int64_t{sequence.prompt} + sequence.to_emit;
    if (state.kv().blocks_of(holds) > state.kv().free()) return;
    state.admit(0, {}, sequence.known(), holds);
  }
}

}  // namespace stepsim
