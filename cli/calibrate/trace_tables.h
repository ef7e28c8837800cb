// The files of `stepsim calibrate` that are traces of PyTorch's profiler, as tables.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibration/calibration_input.h"
#include "sim/base/error.h"

namespace stepsim {

// What the host of the traces takes for a launch: a quarter of the launches follow one another
// within so many seconds. The longer ones also have what Python does, and waits for other threads.
// A fifth of the launches is held out of the first two.
struct LaunchCost {
  double seconds = 0;  // the quarter
  double median = 0;
  double held_out = 0;  // the quarter of the fifth
  std::size_t launches = 0;
};

struct TraceTables {
  std::vector<std::string> files;  // that are no traces
  std::vector<GivenTable> tables;
  std::vector<std::pair<std::string, std::size_t>> unused;  // by reason
  std::optional<LaunchCost> launch{};
  std::vector<std::string> remarks;
};

// A file that ends in .json or .json.gz, several with commas between them, and a folder are each
// the ranks of one trace. Adds problems.
TraceTables read_trace_tables(const std::vector<std::string>& files, const CalibrationInput& input,
                              const CalibrationChoice& choice, std::vector<Problem>& problems);

}  // namespace stepsim
