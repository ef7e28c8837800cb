#include "measured/simulate_training_run.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "sim/hardware/group_links.h"
#include "sim/run/simulate.h"

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

// Returns what the software's optimizer copies of gradients, in bytes of each parameter whose state
// a rank has. DeepSpeed's BF16_Optimizer, which accumulates apart, makes no copies.
double flat_gradient_bytes(const ParallelPlan& plan) {
  const bool copies = (plan.state.zero == 1 || plan.state.zero == 2) &&
                      !plan.update.separate_accumulation && !plan.offload.optimizer;
  return copies ? static_cast<double>(plan.allocator.flat_gradient_bytes) : 0;
}

// Throws ConfigError, DeadlockError.
RunPrediction simulate_run(const Experiment& experiment, const Cluster& cluster,
                           const RunLimits& limits) {
  const SimulatedExperiment done = simulate_unless_long(experiment, cluster, limits);
  const SimulationResult& result = done.runs.front().result;
  const MemoryPeak& peak = result.memory_peaks[result.peak_rank.index()];
  const auto bytes_of = [&peak](MemoryCategory category) {
    return static_cast<double>(peak.by_category[static_cast<std::size_t>(category)].value());
  };
  const double fixed = bytes_of(MemoryCategory::kFixedOverhead);
  const double tensors = static_cast<double>(peak.bytes.value()) - fixed;
  const ParallelPlan& plan = experiment.plan;
  const double divided_parameters =
      bytes_of(MemoryCategory::kOptimizer) / static_cast<double>(plan.update.optimizer_bytes);
  return {.step_time_s = to_seconds(result.step_time),
          .tensor_bytes = tensors,
          .unused_bytes =
              plan.allocator.unused * tensors + flat_gradient_bytes(plan) * divided_parameters,
          .fixed_bytes = fixed,
          .capacity_bytes = static_cast<double>(cluster.chip.memory_capacity.value()),
          .utilization = done.runs.front().metrics.model_flops_utilization,
          .fits = peak.bytes <= cluster.chip.memory_capacity,
          .situation = situation_of(experiment, chips_per_node(cluster.places))};
}

}  // namespace

RunOutcome simulate_training_run(LoadedExperiment run, std::uint64_t most_ops,
                                 const std::function<bool()>& goes_on, std::mutex& one_at_a_time) {
  RunOutcome outcome;
  try {
    const Cluster cluster = cluster_for_steps(run.experiment, std::move(run.topology));
    outcome.prediction =
        simulate_run(run.experiment, cluster,
                     {.most_ops = most_ops, .goes_on = goes_on, .one_at_a_time = one_at_a_time});
  } catch (const ConfigError& error) {
    outcome.problem = error.problems().front().field + ": " + error.problems().front().message;
  } catch (const DeadlockError&) {
    outcome.problem = "the step never ends";
  } catch (const std::range_error& error) {
    outcome.problem = error.what();
  }
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
