#include "cli/calibrate/calibrate_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "calibration/calibrate_all.h"
#include "cli/calibrate/calibrate_options.h"
#include "cli/calibrate/calibration_text.h"
#include "cli/calibrate/trace_tables.h"
#include "cli/outputs.h"
#include "cli/session/progress_line.h"
#include "cli/session/standard_output.h"
#include "proto/catalog/catalog.h"
#include "proto/messages/changed_entry.h"

namespace stepsim {
namespace {

// A text that an option asks for, or why there is none.
struct EntryText {
  std::string text;
  std::string problem;
};

EntryText chip_text(const CalibrationInput& input, const CalibrationResult& result) {
  if (result.chips.empty()) return {{}, "no measurement is of a chip: give kernels or steps"};
  if (result.chips.size() > 1) {
    return {{},
            fmt::format("measurements are of several chips, {} and {}: choose with --hardware",
                        result.chips[0].name, result.chips[1].name)};
  }
  const CalibratedChip& chip = result.chips.front();
  if (!chip.matmuls_changed && !chip.power_changed) return {};
  return {provenance(chip.name, input, chip.fits) +
              changed_chip(chip.name, chip.chip,
                           {.matmuls = chip.matmuls_changed, .power = chip.power_changed}),
          {}};
}

EntryText library_text(const CalibrationInput& input, const CalibrationResult& result) {
  if (result.libraries.empty()) {
    return {{}, "no measurement is of a library: give collectives or logs of nccl-tests"};
  }
  if (result.libraries.size() > 1) {
    return {{},
            fmt::format("measurements are of several libraries, {} and {}: choose with "
                        "--hardware",
                        result.libraries[0].name, result.libraries[1].name)};
  }
  const CalibratedLibrary& library = result.libraries.front();
  if (std::ranges::count(list(CatalogKind::kLibrary), library.name) == 0) {
    return {{}, library.name + " is no library of the catalog, which a file could start from"};
  }
  const LibraryCalibration& calibration = library.calibration;
  if (calibration.changed.empty()) return {};
  return {provenance(library.name, input, calibration.fits) +
              changed_library(library.name, calibration.library, calibration.changed),
          {}};
}

// Throws ConfigError if no row of any file can be used.
void require_rows(const CalibrationInput& input) {
  if (!input.matmuls().empty() || !input.libraries().empty() || !input.steps().empty()) return;
  std::vector<Problem> problems;
  for (const auto& [reason, rows] : input.unused()) {
    problems.push_back({"FILE", fmt::format("{} rows can't be used: {}", rows, reason)});
  }
  if (problems.empty()) problems.push_back({"FILE", "there is no row"});
  throw ConfigError(std::move(problems));
}

ExitStatus run_calibrate_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CalibrateRequest request = read_calibrate_request(arguments, problems);
  CalibrationInput input(load_hardware());
  const TraceTables traces = read_trace_tables(request.files, input, request.choice, problems);
  std::vector<Problem> of_files = input.read(traces.files, request.choice, traces.tables);
  for (const auto& [reason, rows] : traces.unused) input.leave_out(reason, rows);
  problems.insert(problems.end(), of_files.begin(), of_files.end());
  throw_if_any(std::move(problems));
  if (!traces.launch) require_rows(input);

  ProgressLine line;
  const auto show = [&line](std::size_t done, std::size_t rows) {
    if (line.is_due()) line.show(fmt::format("steps: {} of {} rows", done, rows));
  };
  CalibrationResult result = calibrate_all(input, {.threads = request.threads, .progress = show});
  result.remarks.insert(result.remarks.end(), traces.remarks.begin(), traces.remarks.end());
  Outputs outputs;
  ExitStatus status = ExitStatus::kDone;
  std::string remarks;
  std::vector<Problem> refused;
  const auto write = [&](const std::string& option, const std::string& path,
                         const EntryText& entry) {
    if (path.empty()) return;
    if (!entry.problem.empty()) refused.push_back({option, entry.problem});
    if (entry.text.empty()) {
      remarks += "\n" + path + " is not written: no constant was fitted\n";
      status = ExitStatus::kNo;
      return;
    }
    outputs.write(path, entry.text);
  };
  write("--write-chip", request.chip_file, chip_text(input, result));
  write("--write-library", request.library_file, library_text(input, result));
  throw_if_any(std::move(refused));
  const CheckResult check = check_of(result, request.allowed);
  if (request.check) remarks += report_of(check);
  if (request.check && !check.worse.empty()) status = ExitStatus::kNo;
  const std::string json = request.json.empty() ? ""
                                                : json_of(input, result, traces.launch,
                                                          request.check ? &check : nullptr);
  outputs.write(request.json, json);
  outputs.commit();
  outputs.print(request.json == "-" ? json : report_of(input, result) + remarks);
  return outputs.end(status);
}

}  // namespace

constinit const Subcommand kCalibrateSubcommand = {
    .name = "calibrate",
    .arguments = "FILE... [options]",
    .summary = "fit a chip's and a library's constants to measurements",
    .description =
        R"(stepsim calibrate fits constants of a chip and of a communication library to measurements, and
writes them as files that --chip and --library read.

Usage:
  stepsim calibrate FILE... [options]

A FILE that ends in .csv is a table of kernels, collectives or training runs in the program's
own keys, as stepsim accuracy reads it; .json or .json.gz is a trace of PyTorch's profiler (a
file a rank, commas between them, or their folder); any other is a log of nccl-tests. Matmuls
give the chip's matmul constants, collectives the library's, and steps the energy of an
operation, by which the clock falls. A fifth of the shapes is held out of each fit. Constants
that the measurements don't determine stay as they were, with the reason. docs/calibrate.md has
a session.
)",
    .options = calibrate_option_list,
    .run = run_calibrate_command,
    .results = calibrate_command_results,
};

}  // namespace stepsim
