// node_rows() lists the members of a group node by node, for algorithms that lead from node to
// node. Nodes come in the order of their first members: the order in which a user or a plan lists
// the ranks decides which nodes are neighbours, as in NCCL. Within a node members stand by their
// place (the first dimension), so that the same index is the same rail in every node.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/collective.h"

namespace stepsim {

// Members of each node. REQUIRES: two dimensions or more, or uneven nodes. O(members log nodes).
std::vector<std::vector<std::uint32_t>> node_rows(const GroupShape& shape);

}  // namespace stepsim
