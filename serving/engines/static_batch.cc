#include "serving/engines/static_batch.h"

#include <limits>

#include "serving/engines/orca.h"

namespace stepsim {

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

}  // namespace stepsim
