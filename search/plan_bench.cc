#include "search/plan_bench.h"

#include <algorithm>

#include "experiment/build_cluster.h"
#include "experiment/energy.h"
#include "experiment/finished_run.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/hardware/group_links.h"

namespace stepsim {
namespace {

constexpr double kSecondsOfHour = 3600;

std::optional<double> joules_of_step(const FinishedRun& run) {
  const auto energy = energy_of_step(run.experiment, run.cluster, run.graph, run.result);
  return energy ? std::optional(energy->joules) : std::nullopt;
}

// What ends the simulation of a plan: the time of the search, or its caller.
struct RunWatch {
  std::optional<SearchClock::time_point> deadline;
  const std::function<bool()>& goes_on;
  bool is_stopped = false;  // by the caller

  bool lets_run() {
    is_stopped = goes_on && !goes_on();
    return !is_stopped && (!deadline || SearchClock::now() < *deadline);
  }
};

// No kernel is faster than its chip, so that bounds of the plan hold.
bool is_steady(const OpGraph& graph) {
  return graph.jitter.deviation == 0 &&
         std::ranges::all_of(graph.ranks, [](const RankData& rank) { return rank.slowdown >= 1; });
}

}  // namespace

std::vector<Problem> PlanBench::problems_of(const ParallelPlan& plan) const {
  return check(plan, place_.base.model, place_.base.cluster, place_.places);
}

ParallelPlan PlanBench::plan(std::uint64_t number) {
  return settled(*place_.space
                      .draft(number, place_.base.plan, place_.base.model,
                             static_cast<std::int64_t>(place_.places.chips.size()))
                      .plan);
}

ParallelPlan PlanBench::settled(ParallelPlan plan) {
  if (!plan.pipeline.balanced || plan.mesh.pp < 1)
    return balanced(std::move(plan), place_.base.model);
  const PipelineKey key{plan.mesh.pp, chunks_of(plan.pipeline), placement_of(plan.pipeline)};
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = layouts_.find(key); known != layouts_.end()) {
      plan.pipeline.balanced = false;
      plan.pipeline.layout = known->second;
      return plan;
    }
  }
  plan = balanced(std::move(plan), place_.base.model);
  const std::scoped_lock lock(mutex_);
  layouts_.emplace(key, plan.pipeline.layout);
  return plan;
}

std::optional<Problem> PlanBench::problem_of(const ParallelPlan& plan) const {
  std::vector<Problem> problems = problems_of(plan);
  if (problems.empty()) return std::nullopt;
  return std::move(problems.front());
}

double PlanBench::cost(Duration step, std::int64_t chips) const {
  return to_seconds(step) * static_cast<double>(chips) / kSecondsOfHour *
         place_.chip_hour.value_or(1);
}

SimulatedPlan PlanBench::simulated(const ParallelPlan& plan, const SearchOptions& options,
                                   std::optional<SearchClock::time_point> deadline,
                                   std::optional<Duration> most_step) {
  Experiment experiment = place_.base;
  experiment.plan = plan;
  const Hardware& at = hardware(plan);
  const Cluster& cluster = at.cluster;
  RunWatch watch{.deadline = deadline, .goes_on = options.goes_on};
  ExperimentOptions run;
  run.before = [&](const OpGraph& graph, const Cluster&, SimulationOptions& simulation) {
    simulation.critical_path = false;
    if (most_step) {
      simulation.limit = {.most = *most_step, .behind = {}};
      if (is_steady(graph)) simulation.limit->behind = at.bounds->behind(plan, graph);
    }
  };
  if (deadline || options.goes_on) {
    run.progress_context = &watch;
    run.progress = [](void* context, Time, std::uint64_t, std::uint64_t) {
      return static_cast<RunWatch*>(context)->lets_run();
    };
  }
  try {
    const SimulatedExperiment done = simulate_experiment(experiment, cluster, run);
    return {.plan = found(experiment, cluster, done, options),
            .ops = done.runs.front().result.statistics.ops};
  } catch (const DeadlockError&) {
    return {.cannot_run = true};
  } catch (const ConfigError&) {
    return {.cannot_run = true};  // a group can't run the algorithm of a collective
  } catch (const StepTooLong& too_long) {
    return {.is_slower = true, .ops = too_long.ops};
  } catch (const SimulationInterrupted&) {
    if (watch.is_stopped) throw;
    return {};
  }
}

// No pass of inference is among the measured runs from which intervals come.
std::optional<Interval> PlanBench::interval(PredictedMetric metric, const ParallelPlan& plan,
                                            double predicted, const SearchOptions& options) const {
  if (plan.is_inference()) return std::nullopt;
  const Situation situation = situation_of(place_.base, plan.mesh.ranks(), plan.precision.type,
                                           chips_per_node(place_.places));
  return interval_of(options.intervals, metric, situation, predicted);
}

Bytes PlanBench::usable(const ParallelPlan& plan, const SearchOptions& options) const {
  return largest_peak(options.headroom, interval(PredictedMetric::kMemory, plan, 1, options),
                      capacity());
}

Duration PlanBench::least_step() const {
  const Experiment& base = place_.base;
  const auto may_differ = [](const Dimension& dimension) { return dimension.key == "dtype"; };
  const bool drops = base.model.experts.capacity_factor > 0;
  if (drops || std::ranges::any_of(place_.space.dimensions(), may_differ)) return {};
  const double flops = static_cast<double>(place_.places.chips.size()) *
                       base.cluster.chip.peak_of(base.plan.precision.type).value();
  const double seconds = step_flops(base, AttentionFlops::kCausal) / flops;
  return Duration(static_cast<std::int64_t>(seconds * kPicosecondsPerSecond));
}

PlanBench::HardwareKey PlanBench::key_of(const ParallelPlan& plan) const {
  const std::optional<PowerLimit>& power = place_.base.cluster.chip.power;
  const bool differ = power && power->energy_spread > 0;
  return {plan.offload.any(), plan.kernels.sm_margin, differ ? plan.mesh.ranks() : 0};
}

PlanBench::Hardware& PlanBench::hardware(const ParallelPlan& plan) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<Hardware>& made = hardware_[key_of(plan)];
  if (!made) {
    Experiment experiment = place_.base;
    experiment.plan = plan;
    const TopologySpec& topology = experiment.cluster.topology;
    made = std::make_unique<Hardware>(
        Hardware{cluster_for_steps(experiment, build_topology(topology, experiment.cluster.faults)),
                 nullptr});
    made->bounds = std::make_unique<PlanBounds>(place_.base.model, made->cluster);
  }
  return *made;
}

FoundPlan PlanBench::found(const Experiment& experiment, const Cluster& cluster,
                           const SimulatedExperiment& done, const SearchOptions& options) const {
  const SimulatedStep& run = done.runs.front();
  const SimulationResult& result = run.result;
  const FinishedRun finished{experiment, cluster, done.graph, run.options, run.result, run.metrics};
  const ParallelPlan& plan = experiment.plan;
  const Bytes peak = result.memory_peaks[result.peak_rank.index()].bytes;
  const std::optional<Interval> peak_interval =
      interval(PredictedMetric::kMemory, plan, static_cast<double>(peak.value()), options);
  const bool all_fit = fits(finished);  // hosts, too
  return {.plan = plan,
          .step = result.step_time,
          .step_interval_s =
              interval(PredictedMetric::kStepTime, plan, to_seconds(result.step_time), options),
          .peak = peak,
          .peak_interval_bytes = peak_interval,
          .fits = all_fit,
          .certainty = all_fit ? certainty_of(peak, peak_interval, capacity()) : FitCertainty::kNo,
          .leaves_headroom = all_fit && leaves(options.headroom, peak, peak_interval, capacity()),
          .mfu = run.metrics.model_flops_utilization,
          .chips = run.metrics.chips,
          .cost = cost(result.step_time, run.metrics.chips),
          .joules = joules_of_step(finished),
          .breakdown = result.breakdown,
          .axes = done.graph.axes};
}

}  // namespace stepsim
