#include "goodput/failure_clock.h"

#include <algorithm>
#include <cmath>

#include "sim/base/exact_math.h"

namespace stepsim {
namespace {

enum class FailureDraw : std::uint64_t { kTimes = 1000 };
enum ClockEvent : std::uint32_t { kOfClass, kOfUnit };

constexpr double kNever = 1e18;

double to_power(double x, double exponent) {
  return x <= 0 ? 0 : exact_exp(exponent * exact_log(x));
}

double exponential_draw(std::uint64_t u) {
  return static_cast<double>(negative_log(u)) * 0x1p-56;
}

// The mean of a Weibull distribution is scale x gamma(1 + 1 / shape). Stirling's series at z + 10,
// and down by the recurrence.
double gamma_function(double z) {
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  double product = 1;
  for (int i = 0; i < 10; ++i) product *= z + i;
  const double x = z + 10;
  const double square = x * x;
  const double series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / x;
  return exact_exp((x - 0.5) * exact_log(x) - x + kHalfLogTwoPi + series) / product;
}

}  // namespace

FailureClock::FailureClock(const std::vector<ClassSetup>& classes, RunSeed seed) {
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    const ClassSetup& setup = classes[i];
    const RandomStream of_class(seed.seed, FailureDraw::kTimes, i);
    sources_.push_back({.setup = &setup,
                        .stream = RandomStream(of_class.at(seed.run), FailureDraw::kTimes, i),
                        .untouched = setup.units});
    Source& source = sources_.back();
    if (setup.times == FailureTimes::kWeibull) {
      source.scale = static_cast<double>(kTicksPerDay) /
                     (setup.failures_per_day * gamma_function(1 + 1 / setup.shape));
    }
    if (setup.times == FailureTimes::kLemons) {
      const double lemons = setup.lemon_share * static_cast<double>(setup.units);
      source.lemons.resize(static_cast<std::size_t>(std::llround(lemons)));
    }
    if (setup.failures_per_day > 0) schedule_next(i);
  }
}

void FailureClock::schedule(double wait, Event event) {
  if (!(wait < kNever)) return;
  queue_.schedule(Time{Duration(now()) + Duration(static_cast<Ticks>(wait))}, event);
}

double FailureClock::lemon_rate(const Source& source) const {
  const ClassSetup& setup = *source.setup;
  const double all = setup.failures_per_day * static_cast<double>(setup.units);
  const double at_first = std::round(setup.lemon_share * static_cast<double>(setup.units));
  if (source.lemons.empty()) return 0;
  return all * setup.lemon_failures * static_cast<double>(source.lemons.size()) / at_first;
}

// Sound units replace the lemons that were taken out.
double FailureClock::sound_rate(const Source& source) const {
  const ClassSetup& setup = *source.setup;
  const auto units = static_cast<double>(setup.units);
  const double at_first = std::round(setup.lemon_share * units);
  if (at_first == 0) return setup.failures_per_day * units;
  const double each =
      setup.failures_per_day * units * (1 - setup.lemon_failures) / (units - at_first);
  return each * (units - static_cast<double>(source.lemons.size()));
}

void FailureClock::schedule_next(std::uint32_t of) {
  Source& source = sources_[of];
  const ClassSetup& setup = *source.setup;
  if (setup.times == FailureTimes::kWeibull) return schedule_untouched(of);
  const double per_day = setup.times == FailureTimes::kLemons
                             ? lemon_rate(source) + sound_rate(source)
                             : setup.failures_per_day * static_cast<double>(setup.units);
  const double mean = static_cast<double>(kTicksPerDay) / per_day;
  schedule(mean * exponential_draw(source.draw()), Event(kOfClass, of));
}

// n ((x / scale)^shape - (age / scale)^shape) is an exponential number of mean 1.
void FailureClock::schedule_untouched(std::uint32_t of) {
  Source& source = sources_[of];
  if (source.untouched == 0) return;
  const double shape = source.setup->shape;
  const auto age = static_cast<double>(now());
  const double drawn = exponential_draw(source.draw()) / static_cast<double>(source.untouched);
  const double at = source.scale * to_power(to_power(age / source.scale, shape) + drawn, 1 / shape);
  schedule(std::max(0.0, at - age), Event(kOfClass, of));
}

std::int64_t FailureClock::take_weibull(std::uint32_t of) {
  Source& source = sources_[of];
  --source.untouched;
  schedule_untouched(of);
  const auto units = static_cast<std::uint64_t>(source.setup->units);
  return static_cast<std::int64_t>(source.stream.below(units, source.drawn++));
}

std::int64_t FailureClock::take_lemons(std::uint32_t of) {
  Source& source = sources_[of];
  const double lemons = lemon_rate(source);
  const double all = lemons + sound_rate(source);
  const auto count = static_cast<std::uint64_t>(source.lemons.size());
  const bool is_lemon = source.stream.is_true(source.drawn++, lemons / all);
  if (is_lemon && count > 0) {
    const std::uint64_t which = source.stream.below(count, source.drawn++);
    if (++source.lemons[which] >= source.setup->lemon_limit) {
      source.lemons[which] = source.lemons.back();
      source.lemons.pop_back();
    }
  }
  const auto units = static_cast<std::uint64_t>(source.setup->units);
  return static_cast<std::int64_t>(source.stream.below(units, source.drawn++));
}

Failure FailureClock::pop() {
  const Event event = queue_.pop();
  if (event.kind() == kOfUnit) {
    const Renewed unit = renewed_[event.index()];
    Source& source = sources_[unit.of];
    const double shape = source.setup->shape;
    schedule(source.scale * to_power(exponential_draw(source.draw()), 1 / shape), event);
    return {unit.of, unit.unit};
  }
  const std::uint32_t of = event.index();
  Source& source = sources_[of];
  const FailureTimes times = source.setup->times;
  if (times == FailureTimes::kWeibull) {
    const std::int64_t unit = take_weibull(of);
    const Event own(kOfUnit, static_cast<std::uint32_t>(renewed_.size()));
    renewed_.push_back({of, unit});
    schedule(source.scale * to_power(exponential_draw(source.draw()), 1 / source.setup->shape),
             own);
    return {of, unit};
  }
  if (times == FailureTimes::kLemons) {
    const std::int64_t unit = take_lemons(of);
    schedule_next(of);
    return {of, unit};
  }
  const auto units = static_cast<std::uint64_t>(source.setup->units);
  const auto unit = static_cast<std::int64_t>(source.stream.below(units, source.drawn++));
  schedule_next(of);
  return {of, unit};
}

}  // namespace stepsim
