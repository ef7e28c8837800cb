// Orca (Yu et al., OSDI 2022): batches change at every step. A request is admitted, first come
// first served, when room for its prompt and its longest answer is free, which it keeps to its
// end, so nobody is preempted. A step computes the whole prompt of new requests and a token of the
// others.

#pragma once

namespace stepsim {

class EngineState;
struct EngineRow;

EngineRow orca_engine();

// Puts every running request that has not ended into the step, then admits waiting ones whose whole
// sequence has room, with their whole prompts.
void schedule_all_running(EngineState& state);
void admit_with_reserve(EngineState& state);

}  // namespace stepsim
