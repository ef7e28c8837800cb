#include "books/laboratory/stack_step.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "schedules/plan/axis.h"
#include "schedules/plan/keys/plan_syntax.h"
#include "topology/small_clusters.h"
#include "workload/model/model_spec.h"

namespace stepsim {
namespace {

constexpr double kNoMemoryBound = 1e18;  // B/s

}  // namespace

Cluster ideal_v5p(const std::vector<int>& shape) {
  TorusSpec torus;
  for (const int size : shape) torus.axes.push_back({.size = size, .wraps = size > 2});
  torus.link_bandwidth = Bandwidth(kV5pLink);
  ChipSpec chip = ideal_chip();
  chip.peak = peaks_of_all_types(Throughput(kV5pFlops));
  chip.memory_bandwidth = Bandwidth(kNoMemoryBound);
  return cluster_of(torus, chip);
}

SimulationResult simulate(const Laboratory& laboratory, const ModelSpec& model,
                          const ParallelPlan& plan, const Cluster& cluster,
                          const ExperimentOptions& options) {
  for (const Problem& problem : check(plan, model, cluster.places)) {
    throw std::logic_error(problem.field + ": " + problem.message);
  }
  // Not one initializer: GCC 12 destroys a nested one twice if a later one throws.
  Experiment experiment;
  experiment.name = model.name;
  experiment.model = model;
  experiment.cluster.chip = cluster.chip;
  experiment.plan = plan;
  return laboratory.simulate(experiment, cluster, options);
}

SimulationResult run(const Laboratory& laboratory, const StackStep& step, const Cluster& cluster) {
  const ModelSpec model{.name = "mlp_stack",
                        .kind = ModelKind::kMlpStack,
                        .layers = step.layers,
                        .hidden = step.width,
                        .mlp = {.width = step.mlp_width}};
  ParallelPlan plan = step.plan;
  plan.batch.microbatch_size = 1;
  plan.batch.sequence = step.tokens;
  plan.batch.global_batch = plan.mesh.dp * step.microbatches;
  kMapSyntax.read(step.map, plan);
  plan.training.optimizer = step.optimizer ? Optimizer::kAdam : Optimizer::kNone;
  if (plan.state.zero < 3)
    plan.messages.gradient_bucket_parameters = 1;  // one layer fills a bucket
  ExperimentOptions options{.granularity = step.granularity};
  options.algorithms[static_cast<std::size_t>(Axis::kTensor)] = step.tensor_algorithm;
  options.algorithms[static_cast<std::size_t>(Axis::kData)] = step.data_algorithm;
  if (step.record) options.recorded_ranks = {RankId(0)};
  return simulate(laboratory, model, plan, cluster, options);
}

SimulationResult run(const Laboratory& laboratory, const StackStep& step) {
  return run(laboratory, step, ideal_v5p(step.slice));
}

double seconds(const Laboratory& laboratory, const StackStep& step) {
  return to_seconds(run(laboratory, step).step_time);
}

std::pair<double, double> collective_matmuls_on_packets(double layers, double m, double k,
                                                        double chunks, double rest) {
  const double late = layers * (3 * m + k / chunks + k / 2 * (1 + 1 / chunks)) + rest;
  return {late - layers * m / 2 / chunks, late};
}

double least_state(const SimulationResult& result) {
  std::optional<std::int64_t> least;
  for (const MemorySample& sample : result.timelines.front().memory) {
    std::int64_t held = 0;
    for (const MemoryCategory category :
         {MemoryCategory::kParameters, MemoryCategory::kGradients, MemoryCategory::kOptimizer}) {
      held += sample.bytes[static_cast<std::size_t>(category)].value();
    }
    least = std::min(least.value_or(held), held);
  }
  return static_cast<double>(least.value_or(0));
}

}  // namespace stepsim
