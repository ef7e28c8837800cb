// CalibrateRequest is the checked command line of `stepsim calibrate`.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/calibration_input.h"
#include "cli/subcommand.h"
#include "sim/base/error.h"

namespace stepsim {

struct CalibrateRequest {
  std::vector<std::string> files;
  CalibrationChoice choice;
  std::string chip_file{};     // to be written; empty: none
  std::string library_file{};  // the same
  std::string json{};          // file, or "-" for standard output; empty: none
  bool check = false;
  double allowed = 0;  // --check: how far the present median may be above the fitted one
  std::size_t threads = 1;
};

// Adds problems to `problems`.
CalibrateRequest read_calibrate_request(const std::vector<std::string>& arguments,
                                        std::vector<Problem>& problems);

OptionList calibrate_option_list();

}  // namespace stepsim
