// TensorRT-LLM's scheduler (batch_manager: capacity scheduler, then micro-batch scheduler).
//
// capacity=no-evict: a request is admitted if the blocks of its prompt and its whole answer are
// free; nobody is ever paused. capacity=max-utilisation: blocks are taken as they are needed, and
// who finds none pauses the request that was started last. Then decodes go first into the `budget`
// of a step, and prompts behind them, whole ones unless chunked_prefill is on.

#pragma once

#include "serving/engines/engine.h"

namespace stepsim {

class TrtllmEngine final : public Engine {
 public:
  void form(EngineState& state) override;

 private:
  static void admit_waiting(EngineState& state);
};

}  // namespace stepsim
