#include "cli/run/run_html.h"

#include <cstdint>
#include <utility>

#include "cli/session/progress.h"
#include "cli/version.h"
#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "pages/run/run_drawings.h"
#include "pages/run_page.h"
#include "proto/catalog/measured_tables.h"
#include "proto/messages/json_value.h"
#include "sim/base/parallel.h"

namespace stepsim {

ExperimentOptions recording_for_page(ExperimentOptions options) {
  options.explains = true;
  options.record_each_role = true;
  options.share_timelines = true;
  options.record_links = true;
  return options;
}

bool affords_sensitivity(const FinishedRun& run) {
  constexpr std::uint64_t kMostOps = 1'000'000;
  return run.result.statistics.ops <= kMostOps && run.options.fidelity != Fidelity::kPacket;
}

Sensitivity sensitivity_of(const RunRequest& request) {
  return find_sensitivity(WhatIf(request.options.source, request.options.simulation),
                          levers_of(request.record.fields), threads_of_machine());
}

PageOfRun page_of_request(RunRequest request) {
  const RunOptions& options = request.options;
  const Cluster cluster = cluster_for_steps(request.experiment, std::move(request.topology));
  Progress progress;
  ExperimentOptions simulation = recording_for_page(options.simulation);
  progress.watch(simulation);
  const SimulatedExperiment done = simulate_experiment(request.experiment, cluster, simulation);
  progress.wipe();
  const AskedExperiment asked{record_json(request.record, options.simulation, version()),
                              request.record.overrides, request.publication, load_intervals()};
  const SimulatedStep& step = done.runs.front();
  const FinishedRun run{request.experiment, cluster,     done.graph,
                        step.options,       step.result, step.metrics};
  WhatIfFindings what_if;
  if (affords_sensitivity(run)) what_if.sensitivity = sensitivity_of(request);
  return {run_html(run, asked, what_if), step.metrics.step_time};
}

std::string run_html(const FinishedRun& run, const AskedExperiment& asked,
                     const WhatIfFindings& what_if) {
  const std::string json = run_json(report_on(run, asked, true), what_if);
  return run_page(parse_json(json).value.value(), run_drawings(run));
}

}  // namespace stepsim
