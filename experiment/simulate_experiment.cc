#include "experiment/simulate_experiment.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "experiment/build_cluster.h"
#include "experiment/pass_dispatch.h"
#include "experiment/pipeline_times.h"
#include "schedules/lowering/lower.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

void choose_algorithms(const ExperimentOptions& options, OpGraph& graph) {
  for (CollectiveWork& work : graph.collective_works) {
    const Axis axis = graph.communicators[work.communicator.index()].axis;
    const auto& algorithm = options.algorithms[static_cast<std::size_t>(axis)];
    if (algorithm) work.algorithm = *algorithm;
  }
}

// Adds the first rank of each program that none of `ranks` runs.
void add_each_role(const OpGraph& graph, std::vector<RankId>& ranks) {
  std::set<ProgramId> roles;
  for (const RankId rank : ranks) roles.insert(graph.ranks[rank.index()].program);
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    if (roles.insert(graph.ranks[rank].program).second) ranks.emplace_back(rank);
  }
}

}  // namespace

std::uint32_t steps_of(const ParallelPlan& plan) {
  const bool gathers_ahead =
      (plan.state.zero == 3 || plan.overlap.parameters) && plan.mesh.replicas() > 1;
  return gathers_ahead || overlaps_steps(plan) ? 2 : 1;
}

SimulationOptions simulation_options(const ExperimentOptions& options, const ParallelPlan& plan,
                                     const OpGraph& graph, Fidelity fidelity) {
  SimulationOptions simulation{.fidelity = fidelity,
                               .granularity = options.granularity,
                               .packets = options.packets,
                               .transport = options.transport,
                               .steps = options.steps.value_or(steps_of(plan)),
                               .recorded_ranks = options.recorded_ranks,
                               .share_timelines = options.share_timelines,
                               .record_links = options.record_links,
                               .fold = options.fold,
                               .repeats = options.fold && options.repeats,
                               .progress = options.progress,
                               .progress_context = options.progress_context};
  PacketOptions& packets = simulation.packets;
  packets.header_bytes = std::min(packets.header_bytes, packets.packet_bytes);
  if (options.record_each_role || options.explains) add_each_role(graph, simulation.recorded_ranks);
  return simulation;
}

OpGraph lower_experiment(const Experiment& experiment, const Cluster& cluster,
                         const ExperimentOptions& options) {
  const PipelineCosts costs = pipeline_times(experiment.model, experiment.plan, cluster);
  const ParallelPlan plan = plan_of_pass(experiment.plan, cluster.library, cluster.places);
  OpGraph graph = lower(experiment.model, plan, cluster.places, cluster.chip, costs);
  choose_algorithms(options, graph);
  vary(experiment.variation, options.seed, graph);
  return graph;
}

SimulatedExperiment simulate_experiment(const Experiment& experiment,
                                        const ExperimentOptions& options) {
  return simulate_experiment(experiment, cluster_for_steps(experiment), options);
}

SimulatedExperiment simulate_experiment(const Experiment& experiment, const Cluster& cluster,
                                        const ExperimentOptions& options) {
  SimulatedExperiment done{.graph = lower_experiment(experiment, cluster, options), .runs = {}};
  std::vector<SimulationOptions> simulations;
  for (const Fidelity fidelity : options.fidelities) {
    simulations.push_back(simulation_options(options, experiment.plan, done.graph, fidelity));
    if (options.before) options.before(done.graph, cluster, simulations.back());
  }
  for (SimulationOptions& simulation : simulations) {
    SimulationResult result = simulate(done.graph, cluster, simulation);
    const StepMetrics metrics = measure(experiment, result, options.attention_flops);
    done.runs.push_back({std::move(simulation), std::move(result), metrics});
  }
  return done;
}

}  // namespace stepsim
