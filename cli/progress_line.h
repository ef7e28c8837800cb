// ProgressLine says on standard error how far a long piece of work is: on a terminal a line that
// changes, else a line every 10 s. Nothing appears in the first second (10 s without a terminal).

#pragma once

#include <chrono>
#include <string>

namespace stepsim {

class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();  // wipes the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool is_due() const;  // whether show() would draw now
  void show(const std::string& text);
  void wipe();

 private:
  using Clock = std::chrono::steady_clock;
  const bool quiet_;
  const bool on_terminal_;
  bool drawn_ = false;
  Clock::time_point next_;
};

}  // namespace stepsim
