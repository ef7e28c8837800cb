#include "cli/session/progress_line.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "cli/session/standard_output.h"

namespace stepsim {
namespace {

std::atomic<bool> is_hidden = false;

bool can_change_a_line() {
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return isatty(STDERR_FILENO) != 0 && !dumb;
}

}  // namespace

void hide_progress() {
  is_hidden = true;
}

ProgressLine::ProgressLine()
    : session_(current_session()),
      hidden_(is_hidden || session_ != nullptr),
      on_terminal_(can_change_a_line()),
      next_(Clock::now() + std::chrono::seconds(on_terminal_ ? 1 : 10)) {}

ProgressLine::~ProgressLine() {
  wipe();
}

bool ProgressLine::is_due() const {
  if (!goes_on(session_)) throw SessionStopped();
  return !hidden_ && Clock::now() >= next_;
}

void ProgressLine::show(const std::string& text) {
  if (is_due()) show_at_once(text);
}

void ProgressLine::show_at_once(const std::string& text) {
  if (hidden_) return;
  next_ = Clock::now() + std::chrono::milliseconds(on_terminal_ ? 200 : 10'000);
  on_terminal_ ? redraw_error(text) : print_error(text + "\n");
  drawn_ = on_terminal_;
}

void ProgressLine::wipe() {
  if (drawn_) redraw_error("");
  drawn_ = false;
}

}  // namespace stepsim
