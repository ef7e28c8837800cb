#include "cli/compare/compare_command.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "cli/command_line.h"
#include "cli/compare/comparison.h"
#include "cli/compare/comparison_results.h"
#include "cli/compare/comparison_text.h"
#include "cli/html_option.h"
#include "cli/outputs.h"
#include "cli/run/experiment_result.h"
#include "cli/session/progress.h"
#include "proto/catalog/measured_tables.h"
#include "proto/messages/message_file.h"
#include "sim/base/input_file.h"
#include "sim/base/parallel.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kMostRuns = 20;

po::options_description compare_option_list() {
  po::options_description options("Options", 100, 50);
  add_json_option(options);
  add_html_option(options);
  add_input_option(options);
  return options;
}

// Returns the result that a file holds; nullopt if the name is something else, such as an
// experiment. Adds a problem if the file can't be read.
std::optional<Json> result_in_file(const std::string& name, std::vector<Problem>& problems) {
  if (!name.ends_with(".json") && !name.ends_with(".json.gz")) return std::nullopt;
  const TextOrProblem read = read_input(name, InputKind::kText);
  if (!read.text) {
    problems.push_back({name, "can't be read: " + read.problem});
    return std::nullopt;
  }
  std::optional<Json> value = parse_json(*read.text).value;
  const bool is_result = value && value->is_object() && value->contains("step_time_s");
  return is_result ? std::move(value) : std::nullopt;
}

// A run, or the experiment that is still to be run.
struct Named {
  ComparedRun run;
  std::optional<LoadedExperiment> loaded{};
};

Named find_run(const std::string& name, std::vector<Problem>& problems) {
  Named named{.run = {name, "result", Json()}};
  const std::size_t before = problems.size();
  std::optional<Json> result = result_in_file(name, problems);
  if (problems.size() > before) return named;
  if (result) {
    const std::string trouble = trouble_with_result(*result);
    if (!trouble.empty()) problems.push_back({name, trouble});
    named.run.result = std::move(*result);
    return named;
  }
  named.run.source = "simulated";
  try {
    named.loaded = load_with_topology({.experiment = name});
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) {
      problems.push_back({name + " " + problem.field, problem.message});
    }
  }
  return named;
}

ExitStatus run_compare_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, compare_option_list(), problems);
  const std::string json = read_output_path(line, "json", OutputFormat::kJson, problems);
  const std::string html = read_html_path(line, {"json"}, problems);
  if (line.words.size() < 2) {
    problems.push_back({"RUN",
                        "must be given, two or more: results of `stepsim run --json`, or "
                        "experiments"});
  } else if (line.words.size() > kMostRuns) {
    problems.push_back({"RUN", "can be given at most " + std::to_string(kMostRuns) + " times"});
  }
  throw_if_any(std::move(problems));
  std::vector<Named> named;
  for (const std::string& name : line.words) named.push_back(find_run(name, problems));
  throw_if_any(std::move(problems));

  const std::vector<IntervalEntry> intervals = load_intervals();
  for_each_in_parallel(named.size(), threads_of_machine(), [&](std::size_t i) {
    if (!named[i].loaded) return;
    const std::string result = experiment_result(std::move(*named[i].loaded), intervals);
    named[i].run.result = parse_json(result).value.value();
  });
  std::vector<ComparedRun> runs;
  for (Named& one : named) runs.push_back(std::move(one.run));
  const RunComparison comparison = compare(runs);
  Outputs outputs;
  const std::string text = json.empty() && html.empty() ? "" : comparison_json_of(runs, comparison);
  outputs.write(json, text);
  if (!html.empty()) outputs.write(html, html_of_result(text));
  outputs.commit();
  outputs.print(json == "-" ? text
                            : comparison_report_of(runs, comparison, shows_color(STDOUT_FILENO)));
  return outputs.end(ExitStatus::kDone);
}

}  // namespace

constinit const Subcommand kCompareSubcommand = {
    .name = "compare",
    .arguments = "A B ... [options]",
    .summary = "say what two or more runs have different, in and out",
    .description =
        R"(stepsim compare says which inputs of runs differ, and every line of the report as a difference from
the first run. It ends with the parts of the step that make the difference, which add up to it.

Usage:
  stepsim compare a.json b.json                   results of stepsim run --json
  stepsim compare llama3-70b-dgx-h100-512 my.textproto

A run is the JSON of a result, or an experiment as stepsim run takes it, which is then simulated.
docs/what-if.md has a session.
)",
    .options = compare_option_list,
    .run = run_compare_command,
    .results = compare_command_results,
};

}  // namespace stepsim
