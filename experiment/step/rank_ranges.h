// rank_ranges() writes lists of ranks.

#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

// Returns "0-7,12", in the order given. Beyond `most` ranges: "and 40 more".
std::string rank_ranges(const std::vector<RankId>& ranks,
                        std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace stepsim
