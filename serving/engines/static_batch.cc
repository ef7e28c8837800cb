#include "serving/engines/static_batch.h"

#include <limits>
#include <vector>

#include "serving/engines/engine_table.h"
#include "serving/engines/orca.h"

namespace stepsim {
namespace {

class StaticEngine final : public Engine {
 public:
  void form(EngineState& state) override;
  void end(EngineState& state, const std::vector<RequestId>& requests) override;

 private:
  std::vector<RequestId> ended_;
};

void StaticEngine::form(EngineState& state) {
  state.begin(std::numeric_limits<std::int64_t>::max());
  if (state.running().empty()) {
    admit_with_reserve(state);
  } else {
    schedule_all_running(state);
  }
}

void StaticEngine::end(EngineState& state, const std::vector<RequestId>& requests) {
  ended_.insert(ended_.end(), requests.begin(), requests.end());
  if (ended_.size() < state.running().size()) return;
  state.retire(ended_);
  ended_.clear();
}

}  // namespace

EngineRow static_engine() {
  return {.name = "static",
          .summary = "static batches, which run until their longest answer is complete",
          .defaults = reserving_defaults(32),
          .make = make_engine<StaticEngine>,
          .reserves_answer = reserves_always,
          .joins_running = false};
}

}  // namespace stepsim
