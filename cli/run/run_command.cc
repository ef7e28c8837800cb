#include "cli/run/run_command.h"

#include <algorithm>
#include <utility>

#include "analysis/step/explain.h"
#include "analysis/step/metrics.h"
#include "cli/packet_run.h"
#include "cli/progress.h"
#include "cli/run/run_options.h"
#include "cli/run/run_outputs.h"
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

ExitStatus run_run_command(const std::vector<std::string>& arguments) {
  catch_interrupts();
  RunRequest request = read_run_request(arguments);
  const RunOptions& options = request.options;
  const Experiment& experiment = request.experiment;
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
  const bool is_good = !options.require_fit || std::ranges::all_of(finished, fits);
  return is_good ? ExitStatus::kDone : ExitStatus::kNo;
}

}  // namespace

constinit const Subcommand kRunSubcommand = {
    .name = "run",
    .arguments = "EXPERIMENT [options]",
    .summary = "simulate a training step",
    .description =
        R"(stepsim run simulates training steps. It says how long a step takes, where the time goes, and
whether the plan fits in memory.

Usage:
  stepsim run EXPERIMENT [options]
  stepsim run --model llama3-70b --cluster dgx-h100-512
              --plan tp=8,pp=4,dp=16,microbatch=1,global-batch=1024,sequence=8192,zero=1

EXPERIMENT is a file (.textproto or .json) or a name from `stepsim catalog experiments`. Beside an
EXPERIMENT, --model and --cluster replace its own, and the keys of --plan override single keys of
its plan. Quantities take units: 64MiB, 400Gbps, 50GB/s, 5us, 989TFLOPS.
docs/experiment-files.md describes the files, docs/plan-keys.md every key of a plan.
)",
    .options = run_option_list,
    .run = run_run_command,
};

}  // namespace stepsim
