// ProgressLine says on standard error how far a long piece of work is: on a terminal a line that
// changes, else a line every 10 s. Nothing appears in the first second (10 s without a terminal),
// in a session (cli/session/session.h), and after hide_progress().

#pragma once

#include <chrono>
#include <string>

#include "cli/session/session.h"

namespace stepsim {

// From now on no ProgressLine shows anything: --quiet. Called before work begins.
void hide_progress();

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // wipes the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether show() would draw now. May be called by any thread of the work. Throws SessionStopped
  // where a session's caller ends it.
  bool is_due() const;
  void show(const std::string& text);
  void show_at_once(const std::string& text);  // also before it is due
  void wipe();

 private:
  using Clock = std::chrono::steady_clock;
  Session* const session_;  // of the thread that began the work; null: none
  const bool hidden_;
  const bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point next_;
};

}  // namespace stepsim
