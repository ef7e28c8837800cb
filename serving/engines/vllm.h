// vLLM v1's scheduler (vllm/v1/core/sched/scheduler.py, 2026): running requests first, in order of
// admission, whether they decode or compute their next chunk; then waiting ones, first come first
// served, with blocks at the head of the line. Who runs out of blocks preempts the last running
// request, which computes everything again.

#pragma once

#include "serving/engines/engine.h"

namespace stepsim {

class VllmEngine final : public Engine {
 public:
  void form(EngineState& state) override;

 private:
  static void schedule_running(EngineState& state);
  static void admit_waiting(EngineState& state);
};

}  // namespace stepsim
