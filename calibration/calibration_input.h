// CalibrationInput is what files of measurements say about chips and libraries: timings of matmuls,
// of collectives, and steps of training.
//
//   CalibrationInput input(load_hardware());
//   const std::vector<Problem> problems = input.read({"gemm.csv", "all_reduce.log"}, choice);
//
// A file that ends in .csv is a table of `stepsim accuracy` in the program's own keys; any other is
// a log of nccl-tests. What can't be read is a problem, with its line and column: a table in other
// columns, numbers that are none, logs that are cut off, several chips in one file where none was
// chosen. Rows that can be read but not used (kernels that are not matmuls, other chips) are
// counted with the reason.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calibration/calibrate_library.h"
#include "calibration/calibrate_matmuls.h"
#include "measured/accuracy.h"
#include "measured/nccl_log.h"
#include "sim/base/error.h"

namespace stepsim {

struct CalibrationChoice {
  std::vector<std::string> hardware{};  // as tables or the catalog call it; empty: what files have
  bool may_mix = false;                 // files may have several chips, each calibrated by itself
  // What logs don't say; hardware: the only one chosen. Its cluster is that of all collectives.
  LogFacts facts{};
};

struct InputSummary {
  std::string file;
  std::string what;  // "kernels", "collectives", "training runs", "nccl-tests"
  std::size_t rows = 0;
  std::size_t used = 0;
};

// A table that was made of something else, such as a trace.
struct GivenTable {
  std::string path;  // for problems
  std::string what;  // for the summary
  CsvTable table;    // of kernels or collectives
};

struct MeasuredLibrary {
  CommunicationLibrary library;  // as on the clusters of its rows
  std::vector<CollectiveTiming> timings;
};

// Not copyable: timings of collectives point to its clusters.
class CalibrationInput {
 public:
  explicit CalibrationInput(std::vector<Hardware> hardware) : hardware_(std::move(hardware)) {}
  CalibrationInput(const CalibrationInput&) = delete;
  CalibrationInput& operator=(const CalibrationInput&) = delete;

  // Returns every problem of the files. The rest of this is of use only if there are none.
  std::vector<Problem> read(const std::vector<std::string>& files, const CalibrationChoice& choice,
                            const std::vector<GivenTable>& given = {});

  // Counts measurements that were left out before they came here.
  void leave_out(const std::string& reason, std::size_t rows) { unused_[reason] += rows; }

  const std::vector<Hardware>& hardware() const { return hardware_; }
  // By chip and type.
  const std::map<std::string, std::map<MatmulType, std::vector<MatmulTiming>>>& matmuls() const {
    return matmuls_;
  }
  const std::map<std::string, MeasuredLibrary>& libraries() const { return libraries_; }
  // Tables of training runs by chip, each with the rows of that chip.
  const std::map<std::string, std::vector<CsvTable>>& steps() const { return steps_; }
  const std::vector<InputSummary>& files() const { return files_; }
  const std::map<std::string, std::size_t>& unused() const { return unused_; }  // rows by reason

 private:
  class TableReader;

  std::vector<Hardware> hardware_;
  std::map<std::string, std::map<MatmulType, std::vector<MatmulTiming>>> matmuls_;
  // By name and library.
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Cluster>> clusters_;
  std::map<std::string, MeasuredLibrary> libraries_;
  std::map<std::string, std::vector<CsvTable>> steps_;
  std::vector<InputSummary> files_;
  std::map<std::string, std::size_t> unused_;
};

}  // namespace stepsim
