#include "goodput/goodput.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>

namespace stepsim {
namespace {

constexpr std::int64_t kMostSpares = 4096;

// The smallest length that this share of the runs does not exceed.
double quantile(const std::vector<Ticks>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return days_of(sorted[static_cast<std::size_t>(std::max(1.0, rank)) - 1]);
}

void add_lengths(std::vector<Ticks> lengths, GoodputResult& result) {
  std::sort(lengths.begin(), lengths.end());
  const auto count = static_cast<double>(lengths.size());
  double sum = 0;
  for (const Ticks length : lengths) sum += days_of(length);
  result.mean_days = sum / count;
  double squares = 0;
  for (const Ticks length : lengths) {
    const double off = days_of(length) - result.mean_days;
    squares += off * off;
  }
  if (lengths.size() > 1) result.standard_error_days = std::sqrt(squares / (count - 1) / count);
  result.p10_days = quantile(lengths, 0.1);
  result.p90_days = quantile(lengths, 0.9);
}

RunSetup with_rate(RunSetup setup, std::size_t of, double factor) {
  setup.classes[of].failures_per_day *= factor;
  return setup;
}

CheckpointCosts with_interval(CheckpointCosts costs, Ticks interval) {
  const Ticks storage = costs.interval * costs.per_storage;
  costs.per_storage = std::max<std::int64_t>(1, (storage + interval - 1) / interval);
  if (!costs.has[0] && !costs.has[1]) costs.per_storage = 1;
  costs.interval = interval;
  return costs;
}

}  // namespace

GoodputResult run_many(const RunSetup& setup, const GoodputOptions& options) {
  GoodputResult result{.runs = options.runs};
  std::vector<Ticks> lengths;
  std::vector<std::int64_t> failures(setup.classes.size());
  const auto count = static_cast<double>(options.runs);
  for (std::int64_t i = 0; i < options.runs; ++i) {
    const TrainingResult run =
        simulate_training(setup, {options.seed, static_cast<std::uint64_t>(i)});
    lengths.push_back(run.length);
    for (std::size_t part = 0; part < kRunParts; ++part) {
      result.parts_days[part] += days_of(run.parts[part]) / count;
    }
    for (std::size_t of = 0; of < failures.size(); ++of) failures[of] += run.failures[of];
    result.restarts += static_cast<double>(run.restarts) / count;
    result.undetected += static_cast<double>(run.undetected) / count;
    result.events += run.events;
    if (options.progress) options.progress(static_cast<double>(i + 1) / count);
  }
  for (const std::int64_t of_class : failures) {
    result.failures_by_class.push_back(static_cast<double>(of_class) / count);
  }
  const std::int64_t all = std::accumulate(failures.begin(), failures.end(), std::int64_t{0});
  result.failures = static_cast<double>(all) / count;
  add_lengths(std::move(lengths), result);
  result.goodput =
      result.parts_days[static_cast<std::size_t>(RunPart::kProductive)] / result.mean_days;
  return result;
}

std::vector<CurvePoint> interval_curve(const RunSetup& setup, Ticks step,
                                       const GoodputOptions& options) {
  constexpr double kFactors[] = {0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 4, 8};
  // Where checkpoints cost nothing the best is every step, and more steps are of interest.
  constexpr double kMore[] = {32, 128, 512};
  std::set<Ticks> intervals;
  std::vector<double> factors(std::begin(kFactors), std::end(kFactors));
  if (setup.checkpoint.interval <= step) {
    factors.insert(factors.end(), std::begin(kMore), std::end(kMore));
  }
  for (const double factor : factors) {
    const auto wanted =
        static_cast<Ticks>(std::llround(factor * static_cast<double>(setup.checkpoint.interval)));
    intervals.insert(std::min(setup.work, std::max<Ticks>(1, (wanted + step - 1) / step) * step));
  }
  std::vector<CurvePoint> curve;
  for (const Ticks interval : intervals) {
    if (interval < setup.checkpoint.storage_flush && setup.checkpoint.per_storage == 1) continue;
    RunSetup changed = setup;
    changed.checkpoint = with_interval(setup.checkpoint, interval);
    curve.push_back({static_cast<double>(interval) / static_cast<double>(kTicksPerSecond),
                     run_many(changed, options)});
  }
  return curve;
}

std::vector<CurvePoint> spares_curve(const RunSetup& setup, const GoodputOptions& options) {
  std::vector<CurvePoint> curve;
  std::set<std::int64_t> counts = {0, setup.spares};
  for (std::int64_t spares = 1; spares <= kMostSpares; spares *= 2) counts.insert(spares);
  constexpr auto kRepair = static_cast<std::size_t>(RunPart::kRepair);
  constexpr auto kDegraded = static_cast<std::size_t>(RunPart::kDegraded);
  const auto missed = [](const GoodputResult& result) {
    return result.parts_days[kRepair] + result.parts_days[kDegraded];
  };
  bool is_enough = false;
  for (const std::int64_t spares : counts) {
    if (is_enough && spares > setup.spares) break;
    if (is_enough && spares != setup.spares) continue;
    RunSetup changed = setup;
    changed.spares = spares;
    curve.push_back({static_cast<double>(spares), run_many(changed, options)});
    const std::size_t last = curve.size() - 1;
    is_enough = last > 0 && missed(curve[last - 1].result) - missed(curve[last].result) <=
                                1e-4 * curve[last].result.mean_days;
  }
  return curve;
}

std::size_t best_spares(const std::vector<CurvePoint>& curve, std::int64_t nodes) {
  const auto paid = [nodes](const CurvePoint& point) {
    return point.result.goodput / (static_cast<double>(nodes) + point.x);
  };
  const auto best = std::max_element(
      curve.begin(), curve.end(),
      [&paid](const CurvePoint& a, const CurvePoint& b) { return paid(a) < paid(b); });
  return static_cast<std::size_t>(best - curve.begin());
}

std::size_t best_point(const std::vector<CurvePoint>& curve) {
  const auto best = std::max_element(
      curve.begin(), curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.result.goodput < b.result.goodput; });
  return static_cast<std::size_t>(best - curve.begin());
}

std::vector<ClassSensitivity> class_sensitivity(const RunSetup& setup,
                                                const GoodputOptions& options) {
  std::vector<ClassSensitivity> all;
  for (std::size_t of = 0; of < setup.classes.size(); ++of) {
    all.push_back({.of = of,
                   .half_days = run_many(with_rate(setup, of, 0.5), options).mean_days,
                   .twice_days = run_many(with_rate(setup, of, 2), options).mean_days});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ClassSensitivity& a, const ClassSensitivity& b) {
                     return a.twice_days - a.half_days > b.twice_days - b.half_days;
                   });
  return all;
}

}  // namespace stepsim
