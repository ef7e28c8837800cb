// Static batching (FasterTransformer, and every framework without a server): the requests that wait
// form a batch of at most `sequences`, which runs until its longest answer is complete. Tokens are
// given out as they are made; the place and the room of a request that has ended stay taken until
// the batch is done. Room for prompt and answer is taken at the start.

#pragma once

#include <vector>

#include "serving/engines/engine.h"

namespace stepsim {

class StaticEngine final : public Engine {
 public:
  void form(EngineState& state) override;
  void end(EngineState& state, const std::vector<RequestId>& requests) override;

 private:
  std::vector<RequestId> ended_;
};

}  // namespace stepsim
