#include "cli/run/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiment/build_cluster.h"
#include "experiment/explained/path_bill.h"
#include "experiment/finished_run.h"
#include "sim/base/parallel.h"

namespace stepsim {
namespace {

constexpr double kTenth = 0.1;
// For the closed forms of single ops. They are linear in times, which are whole picoseconds.
constexpr double kLittle = 1e-4;
constexpr double kLittleOfTimes = 1e-2;
constexpr std::uint64_t kMostRecorded = 5'000'000;  // ops: some 600 MB
constexpr double kEndless = 1024;
constexpr double kGoodEnough = 1.01;  // of the step that endlessly much would give

double seconds(const WhatIfRun& run) {
  return to_seconds(run.step);
}

// The step that the critical path of the run as it is would have.
double along_path(double now, double slope, LeverKind kind, double factor) {
  const double change = kind == LeverKind::kTime ? factor - 1 : 1 - 1 / factor;
  return now * (1 + slope * change);
}

bool leaves_path(double simulated, double expected, double now) {
  constexpr double kOfChange = 0.02;
  constexpr double kOfStep = 1e-4;
  return std::abs(simulated - expected) > kOfChange * std::abs(expected - now) + kOfStep * now;
}

double largest_change(const LeverEffect& effect, double now) {
  return std::max(std::abs(seconds(effect.less) - now), std::abs(seconds(effect.more) - now));
}

}  // namespace

WhatIf::WhatIf(ExperimentSource source, ExperimentOptions options)
    : source_(std::move(source)), options_(std::move(options)) {
  options_.fidelities.resize(1);
  options_.explains = false;
  options_.recorded_ranks.clear();
  options_.record_each_role = false;
  options_.share_timelines = false;
  options_.record_links = false;
  options_.before = nullptr;
  options_.progress = nullptr;
}

LoadedExperiment WhatIf::loaded_with(const Lever& lever, double factor) const {
  ExperimentSource source = source_;
  for (std::string& text : lever.scaled(factor)) source.overrides.push_back(std::move(text));
  return load_with_topology(source);
}

WhatIfRun WhatIf::with(const Lever& lever, double factor) const {
  LoadedExperiment loaded = loaded_with(lever, factor);
  const Experiment& experiment = loaded.experiment;
  const Cluster cluster = cluster_for_steps(experiment, std::move(loaded.topology));
  const SimulatedExperiment done = simulate_experiment(experiment, cluster, options_);
  const SimulatedStep& step = done.runs.front();
  const FinishedRun run{experiment, cluster, done.graph, step.options, step.result, step.metrics};
  return {step.metrics.step_time, fits(run)};
}

WhatIf::Slopes WhatIf::slopes(const std::vector<Lever>& levers, std::size_t threads) const {
  LoadedExperiment loaded = loaded_with({}, 1);
  const Experiment& experiment = loaded.experiment;
  const Cluster cluster = cluster_for_steps(experiment, std::move(loaded.topology));
  SimulatedExperiment done = simulate_experiment(experiment, cluster, options_);
  SimulatedStep& step = done.runs.front();
  const FinishedRun run{experiment, cluster, done.graph, step.options, step.result, step.metrics};
  Slopes slopes;
  slopes.now = {step.metrics.step_time, fits(run)};
  if (step.result.statistics.ops > kMostRecorded) {
    slopes.why_not = fmt::format("{} ops are too many for their time lines to be kept",
                                 step.result.statistics.ops);
    return slopes;
  }
  if (step.options.fidelity == Fidelity::kPacket) {
    slopes.why_not = "packets have no rates: simulate flows";
    return slopes;
  }
  SimulationOptions recording = step.options;
  recording.share_timelines = true;
  for (std::uint32_t rank = 0; rank < done.graph.ranks.size(); ++rank) {
    recording.recorded_ranks.emplace_back(rank);
  }
  const PathBill bill = path_bill(done.graph, cluster, simulate(done.graph, cluster, recording));
  slopes.shared = bill.path > 0 ? std::abs(bill.shared) / bill.path : 0;
  slopes.seconds.resize(levers.size());
  for_each_in_parallel(levers.size(), threads, [&](std::size_t i) {
    const double little = levers[i].kind == LeverKind::kTime ? kLittleOfTimes : kLittle;
    const auto hardware = [&](double factor) {
      LoadedExperiment changed = loaded_with(levers[i], factor);
      Cluster other = cluster_for_steps(changed.experiment, std::move(changed.topology));
      std::optional<HostCost> host = done.graph.host;
      if (host)
        host->launch = changed.experiment.plan.launches.host_launch_cost.value_or(host->launch);
      return std::pair(std::move(other), host);
    };
    const auto [less, less_host] = hardware(1 / (1 + little));
    const auto [more, more_host] = hardware(1 + little);
    slopes.seconds[i] = change_of(bill, done.graph, {less, less_host}, {more, more_host}) /
                        (2 * std::log1p(little) * kPicosecondsPerSecond);
  });
  return slopes;
}

Sensitivity find_sensitivity(const WhatIf& what_if, const std::vector<Lever>& levers,
                             std::size_t threads) {
  constexpr double kFactors[] = {1 - kTenth, 1 + kTenth};
  constexpr std::size_t kRuns = std::size(kFactors);
  const WhatIf::Slopes slopes = what_if.slopes(levers, threads);
  Sensitivity result{
      .now = slopes.now, .effects = {}, .shared = slopes.shared, .no_slopes = slopes.why_not};
  std::vector<WhatIfRun> runs(levers.size() * kRuns);
  for_each_in_parallel(runs.size(), threads, [&](std::size_t i) {
    runs[i] = what_if.with(levers[i / kRuns], kFactors[i % kRuns]);
  });
  const double now = seconds(result.now);
  for (std::size_t i = 0; i < levers.size(); ++i) {
    LeverEffect effect{.lever = levers[i], .less = runs[i * kRuns], .more = runs[i * kRuns + 1]};
    if (!slopes.seconds.empty() && now > 0) {
      effect.slope = slopes.seconds[i] / now;
      const auto changes = [&](const WhatIfRun& run, double factor) {
        return leaves_path(seconds(run), along_path(now, *effect.slope, effect.lever.kind, factor),
                           now);
      };
      effect.less_changes_path = changes(effect.less, 1 - kTenth);
      effect.more_changes_path = changes(effect.more, 1 + kTenth);
    }
    result.effects.push_back(std::move(effect));
  }
  std::ranges::stable_sort(result.effects, std::ranges::greater{},
                           [&](const LeverEffect& effect) { return largest_change(effect, now); });
  return result;
}

Breakeven find_breakeven(const WhatIf& what_if, const Lever& lever) {
  // "More" of a time is less of it.
  const bool is_time = lever.kind == LeverKind::kTime;
  const auto at = [&](double more) { return what_if.with(lever, is_time ? 1 / more : more); };
  Breakeven result{.lever = lever, .now = at(1), .endless = at(kEndless)};
  const double enough = kGoodEnough * seconds(result.endless);
  double low = 1;
  double high = kEndless;
  if (seconds(result.now) <= enough) {
    low = 1 / kEndless;
    high = 1;
  }
  result.there = high == 1 ? result.now : result.endless;
  while (high / low > kGoodEnough) {
    const double middle = std::sqrt(low * high);
    const WhatIfRun run = at(middle);
    if (seconds(run) <= enough) {
      high = middle;
      result.there = run;
    } else {
      low = middle;
    }
  }
  result.factor = is_time ? 1 / high : high;
  return result;
}

}  // namespace stepsim
