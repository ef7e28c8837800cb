#include "cli/serve/serve_command.h"

#include <utility>

#include "cli/command_line.h"
#include "cli/outputs.h"
#include "cli/serve/serve_cases.h"
#include "proto/serving_case/read_cases.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

po::options_description serve_option_list() {
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("cases", po::value<std::string>()->value_name("F.jsonl"),
      "compute scheduler cases, one a line, and compare them with what they expect");
  add_json_option(options);
  add_input_option(options);
  return options;
}

ExitStatus run_cases(const std::string& path, const std::string& json_path,
                     std::vector<Problem> problems) {
  std::vector<SchedulerCase> cases;
  try {
    cases = read_cases(path);
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  throw_if_any(std::move(problems));
  const std::vector<ComputedCase> computed = compute(cases);
  Outputs outputs;
  const std::string json = json_path.empty() ? "" : cases_json(computed);
  outputs.write(json_path, json);
  outputs.commit();
  outputs.print(json_path == "-" ? json : cases_report(computed));
  return outputs.end(status_of(computed));
}

ExitStatus run_serve_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, serve_option_list(), problems);
  for (const std::string& word : line.words) {
    problems.push_back({word, "serve takes options only; see stepsim help serve"});
  }
  const std::string json = read_output_path(line, "json", OutputFormat::kJson, problems);
  if (line.options.count("cases") == 0) {
    problems.push_back({"--cases", "must be given: a file of scheduler cases"});
    throw_if_any(std::move(problems));
  }
  return run_cases(line.value("cases"), json, std::move(problems));
}

}  // namespace

constinit const Subcommand kServeSubcommand = {
    .name = "serve",
    .arguments = "--cases F.jsonl [options]",
    .summary = "let replicas of a model answer requests",
    .description =
        R"(stepsim serve lets replicas of a model answer requests.

Usage:
  stepsim serve --cases F.jsonl [--json F]

--cases computes small problems of vLLM's scheduler in whole microseconds and compares
them with the answers in the file. Exit status 1 unless all are as expected.
)",
    .options = serve_option_list,
    .run = run_serve_command,
};

}  // namespace stepsim
