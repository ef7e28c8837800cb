#include "analysis/accuracy/simulate_training_run.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "sim/hardware/group_links.h"
#include "sim/run/simulate.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// Outside these a share of the chips' peak is a slip of a unit or a digit, not a measurement.
constexpr double kLeastUtilization = 0.02;
constexpr double kMostUtilization = 0.9;

struct RunLimits {
  std::uint64_t most_ops;
  const std::function<bool()>& goes_on;
  std::mutex& one_at_a_time;
};

// Guard ends a simulation of too many ops as it begins, lets no two long ones run at once, and asks
// whether the whole goes on.
class Guard {
 public:
  explicit Guard(const RunLimits& limits) : limits_(limits) {}

  // For ExperimentOptions::progress.
  static bool progress(void* guard, Time /*now*/, std::uint64_t /*ops_done*/,
                       std::uint64_t ops_total) {
    return static_cast<Guard*>(guard)->allows(ops_total);
  }

  // Ops of the simulation that was ended; none if none was.
  std::optional<std::uint64_t> refused() const { return refused_; }

 private:
  bool allows(std::uint64_t ops) {
    if (ops > limits_.most_ops) {
      refused_ = ops;
      return false;
    }
    if (ops > kManyOps && !alone_) alone_ = std::unique_lock(limits_.one_at_a_time);
    return !limits_.goes_on || limits_.goes_on();
  }

  const RunLimits& limits_;
  std::unique_lock<std::mutex> alone_{};
  std::optional<std::uint64_t> refused_{};
};

// Throws ConfigError, DeadlockError, SimulationInterrupted.
SimulatedExperiment simulate_unless_long(const Experiment& experiment, const Cluster& cluster,
                                         const RunLimits& limits) {
  Guard guard(limits);
  ExperimentOptions simulation;
  simulation.progress = Guard::progress;
  simulation.progress_context = &guard;
  try {
    return simulate_experiment(experiment, cluster, simulation);
  } catch (const SimulationInterrupted&) {
    if (!guard.refused()) throw;
    throw ConfigError({{"size", "has " + std::to_string(*guard.refused() / 1'000'000) +
                                    " million ops to simulate, more than --most-ops allows"}});
  }
}

// Throws ConfigError, DeadlockError.
RunPrediction simulate_run(const Experiment& experiment, const Cluster& cluster,
                           const RunLimits& limits) {
  const SimulatedExperiment done = simulate_unless_long(experiment, cluster, limits);
  const SimulationResult& result = done.runs.front().result;
  const MemoryPeak& peak = result.memory_peaks[result.peak_rank.index()];
  const auto fixed = static_cast<double>(
      peak.by_category[static_cast<std::size_t>(MemoryCategory::kFixedOverhead)].value());
  const auto state = static_cast<double>(
      peak.by_category[static_cast<std::size_t>(MemoryCategory::kOptimizer)].value());
  return {.step_time_s = to_seconds(result.step_time),
          .divided_parameters = state / static_cast<double>(experiment.plan.update.optimizer_bytes),
          .tensor_bytes = static_cast<double>(peak.bytes.value()) - fixed,
          .fixed_bytes = fixed,
          .capacity_bytes = static_cast<double>(cluster.chip.memory_capacity.value()),
          .utilization = done.runs.front().metrics.model_flops_utilization,
          .full_flops = model_flops(experiment.model, experiment.plan.batch.global_batch,
                                    experiment.plan.batch.sequence, AttentionFlops::kFull),
          .fits = peak.bytes <= cluster.chip.memory_capacity,
          .situation = situation_of(experiment, chips_per_node(cluster.places))};
}

// Takes the first of the run's recomputes that fits in memory, and says so. If none does, something
// else was read or assumed wrongly, and it takes the first. Throws ConfigError, DeadlockError.
RunPrediction simulate_first_that_fits(TrainingRun& run, const Cluster& cluster,
                                       const RunLimits& limits) {
  Experiment& experiment = run.experiment;
  if (run.recomputes.empty()) return simulate_run(experiment, cluster, limits);
  std::optional<RunPrediction> first;
  for (const RecomputeGuess& guess : run.recomputes) {
    experiment.plan.recomputing.kind = guess.kind;
    experiment.plan.recomputing.keep = guess.keep;
    experiment.plan.recomputing.layers = guess.layers;
    const RunPrediction prediction = simulate_run(experiment, cluster, limits);
    if (prediction.fits) {
      run.assumed.push_back("recompute: " + guess.words + ", the cheapest that fits");
      return prediction;
    }
    if (!first) first = prediction;
  }
  run.assumed.push_back("recompute: " + run.recomputes.front().words +
                        ", though no recompute fits");
  return *first;
}

// The same. What the row leaves open is refuted if nothing fits with it: replicas then divide the
// optimizer's state, or the logits go through a loss in chunks that is known of the software alone,
// if that fits.
RunPrediction simulate_plausible(TrainingRun& run, const RunLimits& limits) {
  const Cluster cluster = cluster_for_steps(run.experiment, std::move(run.topology));
  ParallelPlan& plan = run.experiment.plan;
  const ParallelPlan read = plan;
  const std::vector<std::string> said = run.assumed;
  const RunPrediction first = simulate_first_that_fits(run, cluster, limits);
  if (first.fits || run.is_whole) return first;
  const ParallelPlan first_plan = plan;
  const std::vector<std::string> first_said = run.assumed;
  const bool may_divide = run.zero_is_open && read.state.zero == 0 && read.replicas() > 1;
  const bool may_chunk = read.loss.kernels == LossKernels::kSeparate;
  for (const auto& [divides, chunks] : {std::pair(true, false), {false, true}, {true, true}}) {
    if ((divides && !may_divide) || (chunks && !may_chunk)) continue;
    plan = read;
    run.assumed = said;
    if (divides) plan.state.zero = 1;
    if (chunks) {
      plan.loss.kernels = LossKernels::kChunked;
      plan.loss.hold_logits = false;
    }
    const RunPrediction other = simulate_first_that_fits(run, cluster, limits);
    if (!other.fits) continue;
    std::string words = divides ? "zero_stage: 1" : "";
    if (chunks) words += divides ? ", loss: chunked" : "loss: chunked";
    run.assumed.push_back(words + ", as nothing fits without");
    return other;
  }
  plan = first_plan;
  run.assumed = first_said;
  return first;
}

// Returns nullopt, with the reason in `run.problem`, if the run cannot be simulated.
std::optional<RunPrediction> predict_run(TrainingRun& run, const RunLimits& limits) {
  if (!run.problem.empty()) return std::nullopt;
  try {
    RunPrediction prediction = simulate_plausible(run, limits);
    prediction.memory_figure = run.memory_figure;
    prediction.unused_bytes =
        run.unused_memory * prediction.tensor_bytes +
        static_cast<double>(run.flat_gradient_bytes) * prediction.divided_parameters;
    return prediction;
  } catch (const ConfigError& error) {
    run.problem = error.problems().front().field + ": " + error.problems().front().message;
  } catch (const DeadlockError&) {
    run.problem = "the step never ends";
  } catch (const std::range_error& error) {
    run.problem = error.what();
  }
  return std::nullopt;
}

}  // namespace

RunOutcome simulate_training_run(TrainingRun run, std::uint64_t most_ops,
                                 const std::function<bool()>& goes_on, std::mutex& one_at_a_time) {
  RunOutcome outcome;
  outcome.prediction =
      predict_run(run, {.most_ops = most_ops, .goes_on = goes_on, .one_at_a_time = one_at_a_time});
  outcome.problem = std::move(run.problem);
  outcome.assumed = std::move(run.assumed);
  return outcome;
}

// The MFU that was measured follows from the predicted one: both are the model's FLOPs over a time.
std::string why_implausible_step(const RunPrediction& prediction, double step_time_s) {
  const double utilization = prediction.utilization * prediction.step_time_s / step_time_s;
  if (utilization >= kLeastUtilization && utilization <= kMostUtilization) return {};
  return fmt::format("the step time would be an MFU of {:.3g}; {} to {} are plausible", utilization,
                     kLeastUtilization, kMostUtilization);
}

}  // namespace stepsim
