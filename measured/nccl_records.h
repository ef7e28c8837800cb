// Reads what nccl-tests and rccl-tests write into files beside their logs: the JSON of nccl-tests
// (-J, version 3 of its files), and the CSV, the list of JSON objects or an object a line of
// rccl-tests (-x, -Z: ROCm/rccl-tests#93, #140). Both become the rows of a log.

#pragma once

#include <optional>
#include <string_view>

#include "measured/nccl_log.h"

namespace stepsim {

// Returns nullopt if the text is no such file, but a log perhaps. Cost: O(text).
std::optional<NcclLog> read_nccl_records(std::string_view text);

}  // namespace stepsim
