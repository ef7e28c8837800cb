// Reads files of collectives: an algorithm step by step, and the bytes of a ragged all-to-all.

#pragma once

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/collectives/byte_matrix.h"
#include "sim/collectives/step_list.h"

namespace stepsim {

// Reads proto/algorithm.proto as protobuf text or JSON and proves that the steps do what the
// operation promises. Throws ConfigError with all problems. If the proof fails, the message names
// the member and the block that are wrong.
StepList load_step_list(const std::string& path);

// Returns what is wrong with the steps: what check() finds, or else what the operation promises and
// they don't do. Fields are those of the file: "step[3].to".
std::vector<Problem> problems_of(const StepList& list);

// Reads {"bytes": [[0, 4096, "64KiB"], ...]}: the bytes that the member of each row sends to the
// member of each column. A plain list of rows has the same meaning. Throws ConfigError with all
// problems.
ByteMatrix load_byte_matrix(const std::string& path);

}  // namespace stepsim
