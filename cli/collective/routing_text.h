// Expert routing as one line of the command line:
//
//   experts=256,top-k=8,tokens=4096,token-bytes=14336,copies=node,node-limit=4
//   experts=8,top-k=2,tokens=8192,token-bytes=8KiB,load=30:10:10:10:10:10:10:10
//
// `copies`: expert, member (default) or node. `load`: of each expert, in any unit.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "workload/expert_routing.h"

namespace stepsim {

// `members` and `members_of_node` describe the group. Adds problems to `problems`, under "--routing
// KEY".
ExpertRouting read_routing(std::string_view text, std::uint32_t members,
                           std::uint32_t members_of_node, std::vector<Problem>& problems);

}  // namespace stepsim
