// Ends the process when it is asked to end: Ctrl-C (SIGINT), SIGTERM, SIGHUP of a closed terminal,
// SIGQUIT (Ctrl-\). It ends at once, wherever it is, with status 128 plus the signal. Unfinished
// files are removed first. No loop has to ask whether to go on, but those of a RememberedInterrupt.
//
// A signal that the process was started to ignore (nohup, & in a script) stays ignored. A file
// beyond the limit of sizes (SIGXFSZ) and a pipe that nobody reads (SIGPIPE) are errors of writing
// instead.

#pragma once

#include <csignal>
#include <string_view>

namespace stepsim {

// Call it before anything is written.
void catch_interrupts();

// Gives what an interrupted process says of its work, such as how to go on: at most 500 bytes.
// Without it, it says whether files were written.
void set_interrupt_words(std::string_view words);

// From begin() until it dies, the first interrupt is only remembered, for work that writes what is
// done when it comes; the next one ends the process. There is one at a time. Any thread may ask.
class RememberedInterrupt {
 public:
  RememberedInterrupt() = default;
  ~RememberedInterrupt();
  RememberedInterrupt(const RememberedInterrupt&) = delete;
  RememberedInterrupt& operator=(const RememberedInterrupt&) = delete;

  void begin();
  // Returns the signal that came; 0: none.
  int signal() const;
};

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
