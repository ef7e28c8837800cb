#include "cli/session/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "cli/session/session.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kEnoughToEstimate = 0.3;  // seconds
constexpr double kLongWork = 5;            // seconds

// "54.1 M"
std::string short_count(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  if (count >= 1'000'000'000) return fmt::format("{:.3g} G", value / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.3g} M", value / 1e6);
  if (count >= 10'000) return fmt::format("{:.3g} k", value / 1e3);
  return fmt::format("{}", count);
}

}  // namespace

bool shows_color(int file_descriptor) {
  if (current_session() != nullptr || isatty(file_descriptor) == 0) return false;
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return !dumb && (no_color == nullptr || *no_color == '\0');
}

Progress::Progress(std::string stage)
    : stage_(stage.empty() ? "" : stage + "  "), start_(Clock::now()) {}

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
  if (!has_news(share)) return;
  draw(share, fmt::format("simulated {}, {} of {} ops", to_text(now.since_start),
                          short_count(ops_done), short_count(ops_total)));
}

void Progress::show(double share, const std::string& done) {
  if (has_news(share)) draw(share, done);
}

bool Progress::has_news(double share) {
  const Clock::time_point now = Clock::now();
  if (share < share_) {  // another simulation has started
    start_ = now;
    is_announced_ = false;
  }
  share_ = share;
  elapsed_s_ = std::chrono::duration<double>(now - start_).count();
  const bool is_due = line_.is_due();
  const bool can_tell = elapsed_s_ >= kEnoughToEstimate && share > 0;
  const bool is_long = can_tell && elapsed_s_ / share >= kLongWork;
  return is_due || (is_long && !is_announced_);
}

void Progress::draw(double share, const std::string& done) {
  is_announced_ = true;
  const std::string left =
      share > 0 ? fmt::format(", about {:.0f} s left", elapsed_s_ * (1 - share) / share) : "";
  line_.show_at_once(fmt::format("{}{:3.0f} %  {}{}", stage_, 100 * share, done, left));
}

}  // namespace stepsim
