#include "cli/run/run_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/network/packet_run.h"
#include "cli/outputs.h"
#include "cli/run/nearest_plans.h"
#include "cli/run/replay_run.h"
#include "cli/run/run_export.h"
#include "cli/run/run_html.h"
#include "cli/run/run_options.h"
#include "cli/run/run_outputs.h"
#include "cli/run/what_if.h"
#include "cli/session/out_of_range.h"
#include "cli/session/progress.h"
#include "cli/session/session.h"
#include "cli/version.h"
#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "experiment/step/step_report.h"
#include "pages/run/run_timeline.h"
#include "proto/catalog/measured_tables.h"
#include "sim/base/error.h"
#include "sim/base/parallel.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

// Whether plans near this one are looked for: it doesn't fit, leaves no chip idle, and a simulation
// takes at most seconds, which its ops and the links of its ranks say.
bool wants_others(const StepReport& report) {
  constexpr std::uint64_t kMostOps = 4'000'000;
  constexpr std::size_t kMostRanks = 131'072;
  const FinishedRun& run = report.run;
  return !fits(run) && idle_chips(run.graph, run.cluster).empty() &&
         run.graph.ranks.size() <= kMostRanks && run.result.statistics.ops <= kMostOps &&
         run.options.fidelity != Fidelity::kPacket;
}

// Throws ConfigError if the experiment has no such lever.
Lever lever_for_breakeven(const RunRequest& request) {
  if (request.options.breakeven.empty()) return {};
  std::vector<Problem> problems;
  Lever lever = lever_named(levers_of(request.record.fields), request.options.breakeven,
                            "--breakeven", problems);
  throw_if_any(std::move(problems));
  return lever;
}

WhatIfFindings what_if_of(const RunRequest& request, const Lever& breakeven) {
  const RunOptions& options = request.options;
  WhatIfFindings found;
  if (!options.sensitivity && options.breakeven.empty()) return found;
  const WhatIf what_if(options.source, options.simulation);
  if (options.sensitivity) {
    found.sensitivity =
        find_sensitivity(what_if, levers_of(request.record.fields), threads_of_machine());
  }
  if (!options.breakeven.empty()) found.breakeven = find_breakeven(what_if, breakeven);
  return found;
}

constexpr std::int64_t kManyRanks = 200'000;  // their cluster and ops take more than a second

std::string page_of(const RunRequest& request, const FinishedRun& run, const AskedExperiment& asked,
                    WhatIfFindings what_if) {
  if (!what_if.sensitivity && affords_sensitivity(run)) {
    what_if.sensitivity = sensitivity_of(request);
  }
  return run_html(run, asked, what_if);
}

ExitStatus run_run_command(const std::vector<std::string>& arguments) {
  if (names_job_file(arguments)) return run_job_file(arguments);
  std::vector<std::string> rest = arguments;
  RunExport exported = take_run_export(rest);
  RunRequest request = read_run_request(rest);
  const RunOptions& options = request.options;
  const Lever breakeven = lever_for_breakeven(request);
  const Experiment& experiment = request.experiment;
  Progress progress;
  const bool draws = !options.html.empty() || !options.timeline_plot.empty();
  const std::int64_t ranks = experiment.plan.mesh.ranks();
  if (ranks >= kManyRanks) progress.announce(fmt::format("building the ops of {} ranks", ranks));
  if (exported.asked) prepare_export(experiment, request.record, exported);
  const Cluster cluster = cluster_for_steps(experiment, std::move(request.topology));
  ExperimentOptions simulation =
      draws ? recording_for_page(options.simulation) : options.simulation;
  progress.watch(simulation);
  simulation.before = [&](const OpGraph& graph, const Cluster& on, SimulationOptions& run) {
    announce_packets(graph, on, run, options.yes);
  };
  const SimulatedExperiment done =
      run_in_range([&] { return simulate_experiment(experiment, cluster, simulation); },
                   [&] {
                     progress.wipe();
                     return named(experiment.plan, cluster.fabric, cluster.chip);
                   });
  progress.wipe();

  const AskedExperiment asked{record_json(request.record, options.simulation, version()),
                              request.record.overrides, request.publication, load_intervals()};
  std::vector<StepReport> reports;
  for (const SimulatedStep& step : done.runs) {
    const FinishedRun run{experiment, cluster, done.graph, step.options, step.result, step.metrics};
    reports.push_back(report_on(run, asked, options.simulation.explains));
  }
  const WhatIfFindings what_if = what_if_of(request, breakeven);
  Outputs outputs;
  if (!options.html.empty()) {
    outputs.write(options.html, page_of(request, reports.front().run, asked, what_if));
  }
  if (!options.timeline_plot.empty()) {
    outputs.write(options.timeline_plot, timeline_svg(run_timeline(reports.front().run)));
  }
  write_outputs(options, reports, what_if, outputs);
  const bool is_for_people = !options.json_on_stdout() && current_session() == nullptr;
  if (is_for_people && wants_others(reports.front())) {
    progress.wipe();
    outputs.print(nearest_plans(experiment, cluster.places));
  }
  const auto fit = [&](const StepReport& report) {
    const MemoryPeak& peak = report.run.result.memory_peaks[report.run.result.peak_rank.index()];
    return fits(report.run) && leaves(options.headroom, peak.bytes, report.peak_bytes,
                                      report.run.cluster.chip.memory_capacity);
  };
  const bool is_good = !options.require_fit || std::ranges::all_of(reports, fit);
  ExitStatus status = is_good ? ExitStatus::kDone : ExitStatus::kNo;
  if (exported.asked) {
    status = std::max(status, write_export(exported, done.graph, cluster));
  }
  return outputs.end(status);
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

EXPERIMENT is a file (.textproto or .json), the JSON of a result, which is run again, or a name from
`stepsim catalog experiments --list`. --model and --cluster replace those of an EXPERIMENT, and --plan
overrides single keys of its plan. Quantities take units: 64MiB, 400Gbps, 50GB/s, 5us, 989TFLOPS.
docs/experiment-files.md describes the files, stepsim help plan every key of a plan.
)",
    .options = run_option_list,
    .run = run_run_command,
    .results = run_command_results,
};

}  // namespace stepsim
