// choose_algorithm() makes the algorithm of a choice for the shape of a group. The algorithm table
// has the possible choices (algorithm_table.h). `auto` is no algorithm: it weighs several, and who
// knows the routes takes the one that is fastest on them (sim/run/collectives/collective_plan.h).

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// Returns the algorithms that can do this in this group, without kAuto and kCustom. Never empty.
std::vector<AlgorithmChoice> algorithms_for(CollectiveOp op, const GroupShape& shape);

// Returns why it cannot, and which can: "can't do a broadcast; there are: chain, binomial-tree".
// Empty if it can.
std::string refusal(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape);

// Returns the algorithms that `auto` weighs without a library, in the order of the table. Of equal
// ones it takes the first. REQUIRES: shape.members() > 1. Never empty.
std::vector<AlgorithmChoice> weighed_algorithms(const CollectiveTask& task,
                                                const GroupShape& shape);

// Throws ConfigError if there is a refusal(), or if the algorithm can do the operation with equal
// shards but not with a matrix. REQUIRES: choice is not kAuto;
// shape.members() > 1; task.root is a member; kCustom:
// task.steps are for this operation and number of members. The algorithm refers to the tables that
// the task refers to.
std::unique_ptr<CollectiveAlgorithm> choose_algorithm(const CollectiveTask& task,
                                                      AlgorithmChoice choice,
                                                      const GroupShape& shape);

}  // namespace stepsim
