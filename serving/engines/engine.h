// Engine forms the steps of a replica: which requests take part, with how many tokens, and who goes
// back to waiting. One object a replica; it may keep numbers of its own between steps.

#pragma once

#include <vector>

#include "serving/engines/engine_state.h"

namespace stepsim {

class Engine {
 public:
  virtual ~Engine() = default;

  // Forms the next step in state.batch(), which is empty before. It stays empty if nothing can run.
  virtual void form(EngineState& state) = 0;

  // Takes requests that have emitted their last token out of the replica. Most free their blocks at
  // once.
  virtual void end(EngineState& state, const std::vector<RequestId>& requests) {
    state.retire(requests);
  }
};

}  // namespace stepsim
