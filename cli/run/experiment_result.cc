#include "cli/run/experiment_result.h"

#include <utility>

#include "cli/session/out_of_range.h"
#include "cli/version.h"
#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "experiment/step/step_report.h"
#include "traces/results/result_json.h"

namespace stepsim {

std::string experiment_result(LoadedExperiment loaded,
                              const std::vector<IntervalEntry>& intervals) {
  const Experiment& experiment = loaded.experiment;
  ExperimentOptions& options = loaded.simulation;
  options.fidelities.resize(1);
  const Cluster cluster = cluster_for_steps(experiment, std::move(loaded.topology));
  const SimulatedExperiment done =
      run_in_range([&] { return simulate_experiment(experiment, cluster, options); },
                   [&] { return named(experiment.plan, cluster.fabric, cluster.chip); });
  const SimulatedStep& step = done.runs.front();
  const FinishedRun run{experiment, cluster, done.graph, step.options, step.result, step.metrics};
  const AskedExperiment asked{record_json(loaded.record, options, version()),
                              loaded.record.overrides, loaded.publication, intervals};
  return result_json(report_on(run, asked, options.explains));
}

}  // namespace stepsim
