// Loops that prepare a simulation and may take long call stop_if_asked(), so that Ctrl-C ends them.
// Who runs them says how they are asked.

#pragma once

namespace stepsim {

// `check` throws if the program shall stop. nullptr: nothing stops a loop.
void set_stop_check(void (*check)());

// Throws what the check throws.
void stop_if_asked();

}  // namespace stepsim
