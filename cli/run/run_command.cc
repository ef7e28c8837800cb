#include "cli/run/run_command.h"

#include <algorithm>
#include <utility>

#include "analysis/step/explain.h"
#include "analysis/step/metrics.h"
#include "cli/help.h"
#include "cli/packet_run.h"
#include "cli/progress.h"
#include "cli/run/run_options.h"
#include "cli/run/run_outputs.h"
#include "cli/standard_output.h"
#include "experiment/pipeline_times.h"
#include "schedules/lowering/lower.h"
#include "sim/hardware/cluster.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

SimulationResult simulate_with_progress(const OpGraph& graph, const Cluster& cluster,
                                        SimulationOptions options) {
  Progress progress;
  progress.watch(options);
  stop_if_interrupted();
  return simulate(graph, cluster, options);
}

}  // namespace

bool run_run_command(const std::vector<std::string>& arguments) {
  catch_interrupts();
  RunRequest request = read_run_request(arguments);
  const RunOptions& options = request.options;
  const Experiment& experiment = request.experiment;
  if (options.help) {
    print(help_text({"run"}));
    return true;
  }
  const Cluster cluster = cluster_for_steps(experiment, std::move(request.topology));
  const PipelineCosts costs = pipeline_times(experiment.model, experiment.plan, cluster);
  OpGraph graph = lower(experiment.model, experiment.plan, cluster.places, cluster.chip, costs);
  vary(experiment.variation, options.seed, graph);
  std::vector<SimulationOptions> simulations;
  for (const Fidelity fidelity : options.fidelities) {
    simulations.push_back(simulation_options(request, graph, fidelity));
  }
  for (const SimulationOptions& simulation : simulations) {
    announce_packets(graph, cluster, simulation, options.yes);
  }
  std::vector<SimulationResult> results;
  std::vector<StepMetrics> metrics;
  for (const SimulationOptions& simulation : simulations) {
    results.push_back(simulate_with_progress(graph, cluster, simulation));
    metrics.push_back(measure(experiment, results.back(), options.attention_flops));
  }
  std::vector<FinishedRun> finished;
  for (std::size_t i = 0; i < simulations.size(); ++i) {
    finished.push_back({.experiment = experiment,
                        .cluster = cluster,
                        .graph = graph,
                        .options = simulations[i],
                        .result = results[i],
                        .metrics = metrics[i],
                        .placement = placement_notes(graph, cluster, results[i])});
  }
  std::vector<Explanation> explanations;
  if (options.explain) {
    for (const FinishedRun& run : finished) explanations.push_back(explain(run));
    for (std::size_t i = 0; i < finished.size(); ++i) finished[i].explanation = &explanations[i];
  }
  write_outputs(options, finished);
  return !options.require_fit || std::ranges::all_of(finished, fits);
}

}  // namespace stepsim
