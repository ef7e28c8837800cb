#include "cli/schedule/schedule_command.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "cli/outputs.h"
#include "cli/run/export_option.h"
#include "cli/run/trace_outputs.h"
#include "cli/schedule/schedule_comparison.h"
#include "cli/schedule/schedule_options.h"
#include "cli/schedule/schedule_plot.h"
#include "cli/schedule/schedule_report.h"
#include "cli/session/progress.h"
#include "cli/session/standard_output.h"
#include "experiment/step/schedule_run.h"
#include "schedules/pipeline/orders/fused_neighbours.h"
#include "schedules/pipeline/torch_order.h"

namespace stepsim {
namespace {

// The schedule to run, and the schedules that it is compared with.
struct ScheduleWork {
  ScheduleOptions options;
  PipelineSchedule schedule;
  ComparedRequests compared;
  std::optional<OptimalSchedule> found;
};

// All requests that an option can apply to.
std::vector<ScheduleRequest> takers(const ScheduleWork& work,
                                    const std::optional<ScheduleName>& name, bool is_optimal) {
  std::vector<ScheduleRequest> takers = work.compared.requests;
  if (name) takers.push_back(work.options.request);
  std::vector<OptimalRequest> optimal = work.compared.optimal;
  if (is_optimal) optimal.push_back(optimal_request(work.options.request));
  for (const OptimalRequest& request : optimal) {
    takers.push_back({.chunks = request.chunks, .memory_limit = request.memory_limit});
  }
  ScheduleRequest file{.chunks = work.options.request.chunks};
  if (has_fused_ops(work.schedule)) file.costs.fused = work.options.request.costs.fused;
  if (!name && !is_optimal) takers.push_back(file);
  return takers;
}

ScheduleWork read_work(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  ScheduleWork work{.options = read_schedule_options(arguments, problems),
                    .schedule = {},
                    .compared = {},
                    .found = {}};
  ScheduleOptions& options = work.options;
  const std::optional<ScheduleName> name = schedule_named(options.name);
  ScheduleRequest base = options.request;
  if (name) {
    options.request.name = *name;
    if (!options.named.empty()) options.request = request_for(*name, base);
    const std::vector<Problem> wrong = check_options(options.request);
    problems.insert(problems.end(), wrong.begin(), wrong.end());
  } else if (std::error_code ignored; std::filesystem::exists(options.name, ignored)) {
    work.schedule = read_schedule_file(options, problems);
    base.stages = work.schedule.size();
    base.microbatches = work.schedule.microbatches;
  }
  const bool is_optimal = options.name == kOptimal;
  if (is_optimal) {
    const std::vector<Problem> wrong = check_options(optimal_request(options.request));
    problems.insert(problems.end(), wrong.begin(), wrong.end());
    options.request.costs.fused.reset();  // the others in the comparison don't have it
  }
  if (name || is_optimal || work.schedule.size() > 0) {
    const std::size_t before = problems.size();
    work.compared = compared_requests(options, base, problems);
    // For a single schedule given by name, check_options() has reported unused options.
    if ((!name || !options.named.empty()) && problems.size() == before) {
      const std::vector<Problem> unused = unused_options(base, takers(work, name, is_optimal));
      problems.insert(problems.end(), unused.begin(), unused.end());
    }
  }
  throw_if_any(std::move(problems));
  if (name) work.schedule = make_schedule(options.request);
  if (is_optimal) {
    work.found = search_with_progress(optimal_request(options.request));
    work.schedule = std::move(work.found->schedule);
  }
  return work;
}

ScheduleRun simulate_with_progress(const PipelineSchedule& schedule, const StageCosts& costs,
                                   const std::optional<PostingRule>& rule) {
  SimulationOptions options;
  Progress progress;
  progress.watch(options);
  if (!rule) return simulate_schedule(schedule, costs, std::move(options));
  const Posting posting = rule->post(schedule, costs);
  return simulate_schedule(schedule, costs, std::move(options), &posting);
}

std::vector<std::string> names_and_optimal() {
  std::vector<std::string> names = all_schedule_names();
  names.emplace_back(kOptimal);
  return names;
}

ExitStatus run_schedule_command(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    print(describe_schedules());
    return ExitStatus::kDone;
  }
  std::vector<std::string> rest = arguments;
  const std::optional<AskedExport> exported = take_export(rest, {"torchtitan"});
  if (exported) require_writable(*exported);
  ScheduleWork work = read_work(rest);
  const std::string order = exported ? write_torch_order(work.schedule) : "";
  ScheduleOptions& options = work.options;
  const StageCosts costs = costs_of(options.request);
  const std::optional<PostingRule> posting = posting_of(options, options.name);
  const ScheduleRun run = simulate_with_progress(work.schedule, costs, posting);
  const PlayedSchedule own{options.name, std::move(work.schedule), costs, run.replayed,
                           posting,      std::move(work.found)};
  std::optional<Comparison> comparison;
  if (!options.named.empty()) comparison = compare(options, own, std::move(work.compared));
  Outputs outputs;
  write_trace(options.trace, {run.graph, run.cluster, run.result},
              {.metadata = {{"schedule", options.name}}}, outputs);
  const std::string json = options.json.empty() ? "" : schedule_json(options, own, comparison);
  outputs.write(options.json, json);
  if (exported) outputs.write(exported->path, order);
  if (!options.plot.empty()) {
    outputs.write(options.plot,
                  timeline_svg(schedule_plot(options.name, own.schedule, costs, run.replayed)));
  }
  outputs.commit();
  if (options.json == "-") {
    outputs.print(json);
  } else {
    options.trace.path = trace_if_written(options.trace, run.result, outputs);
    options.json = outputs.if_written(options.json);
    outputs.print(schedule_report(options, own, comparison));
  }
  return outputs.end(ExitStatus::kDone);
}

}  // namespace

constinit const Subcommand kScheduleSubcommand = {
    .name = "schedule",
    .arguments = "NAME [options]",
    .summary = "simulate and compare pipeline schedules",
    .description =
        R"(stepsim schedule simulates one pipeline schedule alone, without a cluster. It shows when each rank
runs which op, the bubble beside the published one, and how many activations each rank holds.

Usage:
  stepsim schedule                                           list the schedules
  stepsim schedule NAME --stages P --microbatches M [options]
  stepsim schedule FILE [options]
  stepsim schedule 1f1b --stages 8 --microbatches 32 --compare zb_h1,zb_h2,zbv_auto,dualpipe

A FILE has one line for each rank with its ops in order: F0.0 F1.0 BW0.0 BW1.0 (micro-batch, dot,
chunk). All times are those of one micro-batch on one chunk; they take units: 5us, 1.5ms.
docs/schedules.md describes each schedule.
)",
    .names = names_and_optimal,
    .options = schedule_option_list,
    .run = run_schedule_command,
    .results = schedule_command_results,
};

}  // namespace stepsim
