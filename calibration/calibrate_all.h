// calibrate_all() fits everything that an input holds: matmuls of each chip and type, the energy of
// an operation on each chip, timings of each library.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "calibration/calibration.h"
#include "calibration/calibration_input.h"
#include "sim/chips/chip_spec.h"
#include "sim/collectives/library.h"

namespace stepsim {

struct CalibrationOptions {
  std::size_t threads = 1;  // at least 1; the result is the same with any number
  // Called while training runs are simulated, one call at a time, from any thread. May be empty.
  std::function<void(std::size_t done, std::size_t rows)> progress{};
};

struct CalibratedChip {
  std::string name;  // in the catalog
  ChipSpec chip;     // with the fitted constants
  bool matmuls_changed = false;
  bool power_changed = false;
  std::size_t sources_of_steps = 0;
  std::vector<Calibration> fits;
};

struct CalibratedLibrary {
  std::string name;  // in the catalog
  LibraryCalibration calibration;
};

struct CalibrationResult {
  std::vector<CalibratedChip> chips;
  std::vector<CalibratedLibrary> libraries;
  std::vector<std::string> remarks;  // what could not be fitted at all, and why
};

// Throws std::runtime_error if NLopt fails.
CalibrationResult calibrate_all(const CalibrationInput& input, const CalibrationOptions& options);

}  // namespace stepsim
