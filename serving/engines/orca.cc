#include "serving/engines/orca.h"

#include <limits>

#include "serving/engines/engine_table.h"

namespace stepsim {
namespace {

class OrcaEngine final : public Engine {
 public:
  void form(EngineState& state) override;
};

void OrcaEngine::form(EngineState& state) {
  state.begin(std::numeric_limits<std::int64_t>::max());
  schedule_all_running(state);
  admit_with_reserve(state);
}

}  // namespace

EngineRow orca_engine() {
  return {.name = "orca",
          .summary = "Orca: a batch changes at every step; room for whole answers",
          .defaults = reserving_defaults(256),
          .make = make_engine<OrcaEngine>,
          .reserves_answer = reserves_always};
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
    if (state.kv().whole_of(holds) > state.kv().free()) return;
    state.admit(0, {}, sequence.known(), holds);
  }
}

}  // namespace stepsim
