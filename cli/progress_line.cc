#include "cli/progress_line.h"

#include <unistd.h>

#include "cli/session.h"
#include "cli/standard_output.h"

namespace stepsim {

ProgressLine::ProgressLine(bool quiet)
    : quiet_(quiet || current_session() != nullptr),
      on_terminal_(isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + std::chrono::seconds(on_terminal_ ? 1 : 10)) {}

ProgressLine::~ProgressLine() {
  wipe();
}

bool ProgressLine::is_due() const {
  throw_if_stopped();
  return !quiet_ && Clock::now() >= next_;
}

void ProgressLine::show(const std::string& text) {
  if (!is_due()) return;
  next_ = Clock::now() +
          (on_terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10'000));
  print_error(on_terminal_ ? "\r\033[K" + text : text + "\n");
  drawn_ = on_terminal_;
}

void ProgressLine::wipe() {
  if (drawn_) print_error("\r\033[K");
  drawn_ = false;
}

}  // namespace stepsim
