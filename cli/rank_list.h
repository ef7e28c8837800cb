// Reads ranks as a person lists them on the command line: "0,8-15".

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

struct RankListRules {
  std::string option;       // "--ranks", for messages
  std::string what;         // "chips of the cluster", for messages
  std::uint32_t count = 0;  // ranks are 0 to count - 1
};

// Returns the ranks in the order of the list, each once. Adds a problem to `problems` for each
// wrong part.
std::vector<std::uint32_t> read_rank_list(std::string_view text, const RankListRules& rules,
                                          std::vector<Problem>& problems);

}  // namespace stepsim
