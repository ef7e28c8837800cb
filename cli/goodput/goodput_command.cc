#include "cli/goodput/goodput_command.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "cli/goodput/assumed_recovery.h"
#include "cli/goodput/goodput_options.h"
#include "cli/help/moved_keys.h"
#include "cli/html_option.h"
#include "cli/outputs.h"
#include "cli/session/progress.h"
#include "cli/session/standard_output.h"
#include "experiment/build_cluster.h"
#include "traces/pictures/goodput_svg.h"
#include "traces/results/goodput_report.h"

namespace stepsim {
namespace {

constexpr std::int64_t kCurveRuns = 200;

// A job of which only the time of a step is known.
TrainedJob given_job(const GoodputRequest& request) {
  TrainedJob trained{.step = *request.step_time};
  JobShape& job = trained.job;
  job.step = std::max<Ticks>(1, ticks_of(trained.step));
  job.work = work_of(request.length, job.step, 1);
  job.chips = request.chips;
  job.chips_per_node = request.chips_per_node;
  job.chips_per_leaf = job.chips_per_pod = job.chips;
  for (const FailureClass& failure : request.table.classes) {
    job.slow_slowdown.push_back(failure.slowdown);
  }
  trained.checkpoint = request.table.checkpoint.bytes.value_or(Bytes());
  trained.times = checkpoint_times(request.table.checkpoint, request.table.restart,
                                   {.bytes = trained.checkpoint,
                                    .chips = job.chips,
                                    .chips_per_node = job.chips_per_node,
                                    .host = Bandwidth(25e9),
                                    .card = Bandwidth(25e9),
                                    .step = trained.step});
  return trained;
}

TrainedJob simulated_job(const GoodputRequest& request, GoodputOutcome& outcome) {
  LoadedExperiment loaded = load_with_topology(request.source);
  say_moved_keys(request.source.experiment, loaded.moved_keys);
  const Experiment& experiment = loaded.experiment;
  if (experiment.plan.pass.inference != Inference::kNone) {
    throw ConfigError({Problem{"pass.inference", "must be left out: goodput is of training"}});
  }
  outcome.experiment = experiment.name;
  outcome.chip = experiment.cluster.chip.name;
  outcome.assumed = assumed_recovery(request, experiment.cluster.name);
  ExperimentOptions simulation = loaded.simulation;
  simulation.fidelities.resize(1);
  const Cluster cluster = cluster_for_steps(experiment, std::move(loaded.topology));
  return train_job(experiment, cluster, request.table,
                   {.length = request.length, .shrink = request.shrink, .simulation = simulation});
}

void require_power(const GoodputRequest& request, const TrainedJob& trained) {
  if (!request.carbon || trained.energy) return;
  throw ConfigError({Problem{"--carbon", "needs a chip whose file says its `power`"}});
}

void add_energy(const GoodputRequest& request, GoodputOutcome& outcome) {
  const std::optional<StepEnergy>& step = outcome.trained.energy;
  if (!step) return;
  outcome.power = {.step_watts = step->mean_watts_per_chip,
                   .idle_watts = step->idle_watts_per_chip,
                   .pue = request.pue};
  outcome.energy = energy_of_run(outcome.power, outcome.setup, outcome.trained.job, outcome.result,
                                 request.carbon ? &*request.carbon : nullptr);
}

void add_curves(const GoodputRequest& request, GoodputOutcome& outcome) {
  GoodputOptions options = request.runs;
  options.runs = std::min(options.runs, kCurveRuns);
  options.progress = nullptr;
  outcome.by_interval = interval_curve(outcome.setup, outcome.trained.job.step, options);
  outcome.by_spares = spares_curve(outcome.setup, options);
  outcome.sensitivity = class_sensitivity(outcome.setup, options);
}

void simulate_runs(const GoodputRequest& request, GoodputOutcome& outcome) {
  Progress progress;
  GoodputOptions options = request.runs;
  options.progress = [&progress](double share) { progress.show(share, "of the runs"); };
  const auto wall = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  outcome.result = run_many(outcome.setup, options);
  outcome.cpu_s = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  outcome.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  outcome.sample = simulate_training(outcome.setup, {request.runs.seed, 0}, true);
  if (request.has_curves) add_curves(request, outcome);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  outcome.peak_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024;
}

ExitStatus run_goodput_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const GoodputRequest request = read_goodput_request(arguments, problems);
  throw_if_any(std::move(problems));
  GoodputOutcome outcome(request.table);
  outcome.price = request.price;
  outcome.asked = request.asked;
  if (request.step_time) {
    outcome.trained = given_job(request);
    outcome.assumed = assumed_recovery(request, "");
  } else {
    outcome.trained = simulated_job(request, outcome);
  }
  require_power(request, outcome.trained);
  outcome.setup = plan_runs(request.table, outcome.trained.job, outcome.trained.times);
  try {
    simulate_runs(request, outcome);
  } catch (const RunStuck& stuck) {
    print_error(std::string("stepsim: ") + stuck.what() + "\n");
    return ExitStatus::kNo;
  }
  add_energy(request, outcome);
  Outputs outputs;
  const std::string json =
      request.json.empty() && request.html.empty() ? "" : goodput_results().json(outcome) + '\n';
  outputs.write(request.json, json);
  if (!request.html.empty()) outputs.write(request.html, html_of_result(json));
  if (!request.plot.empty()) outputs.write(request.plot, goodput_svg(outcome));
  outputs.commit();
  outputs.print(request.json == "-" ? json : goodput_report(outcome, shows_color(STDOUT_FILENO)));
  return outputs.end(ExitStatus::kDone);
}

std::vector<CommandResult> goodput_command_results() {
  return {{"", &goodput_results()}};
}

}  // namespace

constinit const Subcommand kGoodputSubcommand = {
    .name = "goodput",
    .arguments = "EXPERIMENT --failures NAME [options]",
    .summary = "how long a whole training takes, with failures",
    .description =
        R"(stepsim goodput says how long a whole training takes: the step is simulated, and a thousand
runs of it with failures, checkpoints, restarts and repairs.

Usage:
  stepsim goodput EXPERIMENT --failures NAME|FILE --tokens N [options]
  stepsim goodput --failures NAME
  stepsim goodput --step-time TIME --chips N --failures NAME|FILE --days D [options]

  stepsim goodput llama3-405b-dgx-h100-16384 --tokens 15.6e12 --failures llama3 \
    --checkpoint every=auto,to=host+storage,async=true --spares 16 --repair 24h

With --failures alone it runs the experiment that the table has a published figure of.
The step is also simulated with slow nodes, with fewer replicas (--shrink), and with what
checkpoints leave of the network. Runs have the same failures whatever else changes, and are
the same on every machine. docs/goodput.md has the rules,
`stepsim help results goodput` the members of the JSON, `stepsim help failures` the fields of a
table.
)",
    .options = goodput_option_list,
    .run = run_goodput_command,
    .results = goodput_command_results,
};

}  // namespace stepsim
