// What `stepsim calibrate` prints and writes: the report, the JSON, and the comments of the files.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/calibrate_all.h"
#include "calibration/calibration_input.h"
#include "cli/calibrate/trace_tables.h"
#include "cli/subcommand.h"

namespace stepsim {

std::string report_of(const CalibrationInput& input, const CalibrationResult& result);

// Fits whose present constants are worse by more than was allowed. Empty: --check holds.
struct CheckResult {
  double allowed = 0;
  std::vector<std::string> worse;  // "bf16 matmuls on h100-sxm: median 5.0 %, fitted 2.1 %"
};
CheckResult check_of(const CalibrationResult& result, double allowed);
std::string report_of(const CheckResult& check);

// `check`: nullptr without --check.
std::string json_of(const CalibrationInput& input, const CalibrationResult& result,
                    const std::optional<LaunchCost>& launch, const CheckResult* check);

// Comment lines on where the constants of `fits` come from: the version, files, rows and errors.
std::string provenance(const std::string& base, const CalibrationInput& input,
                       const std::vector<Calibration>& fits);

std::vector<CommandResult> calibrate_command_results();

}  // namespace stepsim
