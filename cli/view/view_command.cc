#include "cli/view/view_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "cli/command_line.h"
#include "cli/html_option.h"
#include "cli/outputs.h"
#include "cli/run/run_html.h"
#include "cli/run/run_options.h"
#include "cli/session/standard_output.h"
#include "pages/json_fields.h"
#include "pages/result_page.h"
#include "proto/messages/json_value.h"
#include "sim/base/input_file.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

po::options_description view_option_list() {
  po::options_description options("Options", 100, 50);
  add_html_option(options);
  add_input_option(options);
  return options;
}

struct SavedResult {
  ResultKind kind{};
  Json result;
};

// Adds a problem if the file is no result that has a page.
std::optional<SavedResult> read_result(const std::string& path, std::vector<Problem>& problems) {
  const TextOrProblem read = read_input(path, InputKind::kTable);
  if (!read.text) {
    problems.push_back({path, "can't be read: " + read.problem});
    return std::nullopt;
  }
  JsonOrProblem json = parse_json(*read.text);
  if (!json.value) {
    problems.push_back({path, json.problem});
    return std::nullopt;
  }
  const std::optional<ResultKind> kind = kind_of_result(*json.value);
  if (!kind) {
    problems.push_back({path, fmt::format("must be what --json of one of these commands wrote: {}",
                                          fmt::join(commands_with_pages(), ", "))});
    return std::nullopt;
  }
  return SavedResult{*kind, std::move(*json.value)};
}

// Simulates the run again, as its record says. Tells if the answer is another one than the saved:
// that of another version.
std::string page_of_saved_run(const std::string& path, const Json& result) {
  std::vector<Problem> problems;
  const double saved = JsonFields(result, "", problems).number("step_time_s");
  throw_if_any(std::move(problems));
  PageOfRun page = page_of_request(read_run_request({path}));
  const double now = to_seconds(page.step);
  if (saved != now) {
    print_error(
        fmt::format("stepsim: warning: {} says {:.12f} s a step, and this stepsim {}: the page has "
                    "the latter\n",
                    path, saved, exact_seconds(page.step)));
  }
  return std::move(page.html);
}

ExitStatus run_view_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, view_option_list(), problems);
  const std::string html = read_html_path(line, {}, problems);
  if (line.options.count("html") == 0) {
    problems.push_back({"--html", "must be given: the file to be written"});
  }
  std::optional<SavedResult> saved;
  if (line.words.size() == 1) {
    saved = read_result(line.words.front(), problems);
  } else {
    problems.push_back({"RESULT.json", "must be given, one"});
  }
  throw_if_any(std::move(problems));
  Outputs outputs;
  outputs.write(html, saved->kind == ResultKind::kRun
                          ? page_of_saved_run(line.words.front(), saved->result)
                          : result_page(saved->kind, saved->result));
  outputs.commit();
  const std::string written = outputs.if_written(html);
  std::string text =
      fmt::format("{}: a result of stepsim {}\n", line.words.front(), command_of(saved->kind));
  if (!written.empty()) text += fmt::format("  report  {}  (open it in a browser)\n", written);
  outputs.print(text);
  return outputs.end(ExitStatus::kDone);
}

}  // namespace

constinit const Subcommand kViewSubcommand = {
    .name = "view",
    .arguments = "RESULT.json --html FILE",
    .summary = "write the report of a saved result for a browser",
    .description =
        R"(stepsim view writes the report of a result that --json has saved: the page that --html of the same
command writes.

Usage:
  stepsim view result.json --html report.html

RESULT.json is of run, search, serve, serve-search, compare, accuracy, goodput or diff. A run is
simulated again, as the record in its result says, for what the JSON does not have: the pipeline,
memory and links over time. docs/report.md says what is in the reports.
)",
    .options = view_option_list,
    .run = run_view_command,
};

}  // namespace stepsim
