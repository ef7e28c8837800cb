// Files of collectives: an algorithm step by step, and the bytes of a ragged all-to-all.

#pragma once

#include <string>

#include "sim/collectives/byte_matrix.h"
#include "sim/collectives/step_list.h"

namespace stepsim {

// Reads proto/algorithm.proto as protobuf text or JSON and proves that the steps do what the
// operation promises. Throws ConfigError with everything that is wrong at once; what is not proven
// is refused with the member and the block that come out wrong.
StepList load_step_list(const std::string& path);

// {"bytes": [[0, 4096, "64KiB"], ...]}: what the member of each row has for that of each column. A
// list of rows alone is the same. Throws ConfigError with everything that is wrong at once.
ByteMatrix load_byte_matrix(const std::string& path);

}  // namespace stepsim
