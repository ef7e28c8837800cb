#include "cli/calibrate/calibrate_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/command_line.h"
#include "sim/base/field_text.h"
#include "sim/base/parallel.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kMostRanksOfLog = 1 << 20;
constexpr double kUsualAllowance = 2;  // points of a hundred

CalibrationChoice read_choice(const CommandLine& line, std::vector<Problem>& problems) {
  CalibrationChoice choice{
      .may_mix = line.options.count("check") != 0,
      .facts = {.op = with_underscores(line.value("op")), .cluster = line.value("cluster")}};
  choice.facts.ranks = read_whole_number(line, "ranks", 1, kMostRanksOfLog, problems);
  choice.facts.nodes = read_whole_number(line, "nodes", 1, kMostRanksOfLog, problems);
  if (line.options.count("hardware") != 0) {
    const std::string names = line.value("hardware");
    for (const std::string_view name : split_text(names, ',')) {
      choice.hardware.emplace_back(name);
    }
    if (choice.hardware.size() == 1) choice.facts.hardware = choice.hardware.front();
  }
  return choice;
}

double read_allowance(const CommandLine& line, std::vector<Problem>& problems) {
  if (line.options.count("allow") == 0) return kUsualAllowance / 100;
  const std::string text = line.value("allow");
  const auto points = number_in<double>(text);
  if (line.options.count("check") == 0) problems.push_back({"--allow", "needs --check"});
  if (points && *points >= 0 && *points <= 100) return *points / 100;
  problems.push_back({"--allow", "must be a number, 0 to 100, is \"" + text + "\""});
  return 0;
}

}  // namespace

po::options_description calibrate_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("hardware", text("NAME[,NAME]"),
      "use the rows of this hardware only, and say what logs ran on that name no devices: a chip "
      "of "
      "the catalog, or a name that tables use");
  add("op", text("OP"), "the test of logs that name none: all_reduce, alltoall, ...");
  add("ranks", text("N"), "the ranks of logs that list none");
  add("nodes", text("N"), "their nodes (default: 1)");
  add("cluster", text("NAME|FILE"),
      "the cluster that all collectives ran on (default: the catalog's, of the hardware)");
  add("write-chip", text("FILE.textproto"), "write the chip with the fitted constants");
  add("write-library", text("FILE.textproto"),
      "write the communication library with the fitted constants");
  add("check",
      "exit with status 1 if a fit is better than the present constants by more than "
      "--allow; files may have several chips");
  add("allow", text("POINTS"),
      "with --check: how far the median error may be above that of the fit, in points of a hundred "
      "(default: 2)");
  add("threads", text("N"), "fit this many at once (default: as many as the machine has cores)");
  add_json_option(options);
  add_input_option(options);
  return options;
}

CalibrateRequest read_calibrate_request(const std::vector<std::string>& arguments,
                                        std::vector<Problem>& problems) {
  const CommandLine line = read_command_line(arguments, calibrate_option_list(), problems);
  CalibrateRequest request{.files = line.words,
                           .choice = read_choice(line, problems),
                           .check = line.options.count("check") != 0};
  if (request.files.empty()) {
    problems.push_back(
        {"FILE",
         "must be given, one or more: tables (.csv), traces (.json) or logs of nccl-tests"});
  }
  request.allowed = read_allowance(line, problems);
  request.threads = read_threads(line, "threads", problems);
  request.chip_file = read_output_path(line, "write-chip", OutputFormat::kTextproto, problems);
  request.library_file =
      read_output_path(line, "write-library", OutputFormat::kTextproto, problems);
  request.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  refuse_same_output(line, "write-chip", "write-library", problems);
  refuse_same_output(line, "write-chip", "json", problems);
  refuse_same_output(line, "write-library", "json", problems);
  return request;
}

}  // namespace stepsim
