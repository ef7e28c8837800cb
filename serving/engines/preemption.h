// Preemption by recompute, as vLLM, Sarathi and TensorRT-LLM's max-utilisation have it.

#pragma once

#include <cstddef>
#include <cstdint>

#include "serving/engines/engine_state.h"

namespace stepsim {

// Makes the request at this position of running() hold the blocks for so many more tokens. While
// they are not free, the last of the running requests goes back to the head of the queue; with
// policy=priority the one of the largest (priority, arrival). Returns false if that was the request
// itself. A victim that stood before the request moves its position.
bool make_room(EngineState& state, std::size_t& position, std::int64_t tokens);

// Schedules running requests within the budget, in order: those that decode, or the others. Ends at
// one that preempted itself.
void schedule_running(EngineState& state, bool decodes);

// Blocks that waiting requests must leave free: none while nothing runs.
std::int64_t watermark_blocks(const EngineState& state);

}  // namespace stepsim
