// vLLM v1's scheduler (vllm/v1/core/sched/scheduler.py, 2026): running requests first, in order of
// admission, whether they decode or compute their next chunk; then waiting ones, first come first
// served, with blocks at the head of the line. Who runs out of blocks preempts the last running
// request, which computes everything again.

#pragma once

namespace stepsim {

struct EngineRow;
EngineRow vllm_engine();

}  // namespace stepsim
