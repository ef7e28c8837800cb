// Ends the process when it is asked to end: Ctrl-C (SIGINT), SIGTERM, SIGHUP of a closed terminal,
// SIGQUIT (Ctrl-\). It ends at once, wherever it is, with status 128 plus the signal. Unfinished
// files are removed first. No loop has to ask whether to go on.
//
// A signal that the process was started to ignore (nohup, & in a script) stays ignored. A file
// beyond the limit of sizes (SIGXFSZ) and a pipe that nobody reads (SIGPIPE) are errors of writing
// instead.

#pragma once

#include <csignal>

namespace stepsim {

// Call it before anything is written.
void catch_interrupts();

// While one lives, interrupts wait: what happens meanwhile happens in full. Keep it short.
class HeldInterrupts {
 public:
  HeldInterrupts();
  ~HeldInterrupts();
  HeldInterrupts(const HeldInterrupts&) = delete;
  HeldInterrupts& operator=(const HeldInterrupts&) = delete;

 private:
  sigset_t before_;
};

}  // namespace stepsim
