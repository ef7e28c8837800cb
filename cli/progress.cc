#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "cli/session.h"
#include "cli/standard_output.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

using Clock = std::chrono::steady_clock;

bool is_terminal(int file_descriptor) {
  if (current_session() != nullptr) return false;
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return isatty(file_descriptor) != 0 && !dumb;
}

}  // namespace

bool shows_color(int file_descriptor) {
  const char* const no_color = std::getenv("NO_COLOR");
  const bool wanted = no_color == nullptr || *no_color == '\0';
  return wanted && is_terminal(file_descriptor);
}

Progress::Progress(std::string stage)
    : stage_(stage.empty() ? "" : stage + "  "),
      on_terminal_(is_terminal(STDERR_FILENO)),
      start_(Clock::now()),
      next_line_(start_ + std::chrono::seconds(2)) {}

Progress::~Progress() {
  wipe();
}

void Progress::wipe() {
  if (drawn_) print_error("\r\033[K");
  drawn_ = false;
}

void Progress::watch(SimulationOptions& options) {
  options.progress_context = this;
  options.progress = [](void* context, Time now, std::uint64_t ops_done, std::uint64_t ops_total) {
    static_cast<Progress*>(context)->draw(now, ops_done, ops_total);
    return goes_on(current_session());
  };
}

void Progress::watch(ExperimentOptions& options) {
  SimulationOptions watched;
  watch(watched);
  options.progress = watched.progress;
  options.progress_context = watched.progress_context;
}

void Progress::draw(Time now, std::uint64_t ops_done, std::uint64_t ops_total) {
  const double share =
      ops_total == 0 ? 0 : static_cast<double>(ops_done) / static_cast<double>(ops_total);
  draw(share, "simulated " + to_text(now.since_start));
}

void Progress::show(double share, const std::string& done) {
  throw_if_stopped();
  draw(share, done);
}

void Progress::draw(double share, const std::string& done) {
  if (!on_terminal_) return;
  const Clock::time_point real = Clock::now();
  if (share < share_) start_ = real;  // another simulation has started
  share_ = share;
  if (real < next_line_) return;
  next_line_ = real + std::chrono::milliseconds(150);
  drawn_ = true;
  const double elapsed_s = std::chrono::duration<double>(real - start_).count();
  const std::string left =
      share > 0.01 ? fmt::format(", about {:.0f} s left", elapsed_s * (1 - share) / share) : "";
  print_error(fmt::format("\r\033[K{}{:3.0f} %  {}{}", stage_, 100 * share, done, left));
}

}  // namespace stepsim
