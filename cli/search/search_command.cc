#include "cli/search/search_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "cli/html_option.h"
#include "cli/outputs.h"
#include "cli/processes/process_group.h"
#include "cli/search/search_options.h"
#include "cli/search/search_results.h"
#include "cli/search/search_text.h"
#include "cli/search/shared_search.h"
#include "cli/session/progress.h"
#include "cli/session/progress_line.h"
#include "cli/session/session.h"
#include "cli/version.h"
#include "traces/pictures/plot_svg.h"

namespace stepsim {
namespace {

using ProgressClock = std::chrono::steady_clock;

// "search: 225,792 of 225,792 plans looked at, 37 simulated, best 15.2, bound 14.9"
void show_search(const SearchProgress& progress, ProgressLine& line) {
  if (!line.is_due()) return;
  std::string text = fmt::format("search: {} of {} plans looked at, {} simulated",
                                 progress.considered, progress.all, progress.simulated);
  if (progress.best) text += fmt::format(", best {:.4g}", *progress.best);
  if (progress.best && progress.bound) text += fmt::format(", bound {:.4g}", *progress.bound);
  line.show(text);
}

// Throws ConfigError if every plan breaks a rule: then the question is wrong.
void require_plans(const SearchResult& result) {
  if (result.has_plans || result.excluded.contains("not reached")) return;
  std::vector<Problem> problems;
  for (const auto& [reason, count] : result.excluded) {
    const auto example = result.examples.find(reason);
    const std::string such =
        example == result.examples.end() ? "" : ", such as: " + example->second;
    problems.push_back(
        {"--within", fmt::format("leaves no plan that can run: {} of {} for the reason \"{}\"{}",
                                 count, result.considered, reason, such)});
  }
  throw ConfigError(std::move(problems));
}

// The share of the time that the space gets where its best plans are refined.
constexpr double kTimeOfSpace = 0.75;

SearchResult searched(const SearchRequest& request) {
  SearchOptions options = request.options;
  if (options.time_limit_s && request.refine != RefineEffort::kNone) {
    *options.time_limit_s *= kTimeOfSpace;
  }
  return search_plans(request.places, options);
}

Refinement refined(const SearchRequest& request, const SearchResult& result,
                   const ProgressClock::time_point& start) {
  if (result.least_step) return {};
  std::optional<double> left;
  if (request.options.time_limit_s) {
    left = *request.options.time_limit_s -
           std::chrono::duration<double>(ProgressClock::now() - start).count();
  }
  return refine_plans(request.places, starts_of_refinement(result), request.settled, request.refine,
                      request.options, left);
}

// The best plan as an experiment, complete in itself.
LoadedExperiment loaded_of(const SearchRequest& request, const FoundPlan& plan) {
  ExperimentSource source = request.sources[plan.place];
  KeyTexts texts = key_texts(plan.plan);
  source.plan = std::move(texts.plan);
  source.software = std::move(texts.software);
  source.pass = std::move(texts.pass);
  return load_with_topology(source);
}

ExitStatus run_search_command(const std::vector<std::string>& arguments) {
  const std::unique_ptr<ProcessGroup> group = ProcessGroup::join();
  if (group && !group->is_first()) {
    simulate_plans_for(*group, arguments);
    return ExitStatus::kDone;
  }
  SearchRequest request = read_search_request(arguments);
  if (group) add_helpers(*group, arguments, request.options);
  ProgressLine line;
  request.options.progress = [&](const SearchProgress& progress) { show_search(progress, line); };
  request.options.goes_on = asks_session();
  const ProgressClock::time_point start = ProgressClock::now();
  const SearchResult result = searched(request);
  const Refinement refinement = refined(request, result, start);
  std::optional<PlanVerdict> why;
  if (request.why) why = judge_plan(request.places.front(), *request.why, request.options);
  line.wipe();
  require_plans(result);

  Outputs outputs;
  const std::string json = request.json.empty() && request.html.empty()
                               ? ""
                               : search_json(request, result, refinement, why);
  outputs.write(request.json, json);
  if (!request.html.empty()) outputs.write(request.html, html_of_result(json));
  if (!request.csv.empty()) outputs.write(request.csv, search_csv(request, result));
  if (!request.plot.empty()) outputs.write(request.plot, plot_svg(search_plot(request, result)));
  const FoundPlan* const winner = winner_of(request, result, refinement);
  if (!request.experiment.empty() && winner != nullptr) {
    outputs.write(request.experiment,
                  record_json(loaded_of(request, *winner).record, {}, version()) + "\n");
  }
  outputs.commit();
  outputs.print(request.json == "-"
                    ? json
                    : search_report(request, result, refinement, why, shows_color(STDOUT_FILENO)));
  if (request.exported && winner != nullptr) {
    const LoadedExperiment best = loaded_of(request, *winner);
    write_settings(*request.exported, settings_for(*request.exported, best.experiment, best.record),
                   outputs);
  }
  return outputs.end(winner == nullptr ? ExitStatus::kNo : ExitStatus::kDone);
}

}  // namespace

constinit const Subcommand kSearchSubcommand = {
    .name = "search",
    .arguments = "--model M --cluster C [options]",
    .summary = "find the best plans of a model on a cluster",
    .description =
        R"(stepsim search finds the plans with which a step takes the least time, memory or cost, and the
front: the plans that no other beats in time, memory and chips together.

Usage:
  stepsim search --model llama3-70b --cluster dgx-h100-512 --global-batch 1024 --sequence 8192
  stepsim search --model llama3-8b --cluster dgx-h100-8 --global-batch 64 --sequence 8192
                 --within tp=1,2,4,8,pp=1,2,zero=0..3 --fix microbatch=1

With --within only those keys vary, and all others have their defaults or the values of --fix. dp
follows from the chips unless it is given. What is listed is what simulating every plan would give:
a plan that is not simulated breaks a rule, does not fit, or has a lower bound on its time that is
above the results of others. Without --within the best plans are refined with keys that the space
leaves alone, one change at a time. mpirun -n 8 stepsim search .. simulates in all processes. An EXPERIMENT in front of the options gives its model, cluster and plan
as the start. docs/search.md has a session.
)",
    .options = search_option_list,
    .run = run_search_command,
    .results = search_command_results,
};

}  // namespace stepsim
