// choose_algorithm() turns a choice and the shape of a group into the algorithm that runs. The
// algorithm table has the possible choices (algorithm_table.h); `auto` takes the row with the
// lowest bid (auto_bids.h).

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/collective.h"

namespace stepsim {

struct ChosenAlgorithm {
  AlgorithmChoice choice = AlgorithmChoice::kRing;  // never kAuto
  std::string why;                                  // a sentence
};

// Returns the algorithms that can do this in this group, without kAuto and kCustom. Never empty.
std::vector<AlgorithmChoice> algorithms_for(CollectiveOp op, const GroupShape& shape);

// Returns why it cannot, and which can: "can't do a broadcast; there are: chain, binomial-tree".
// Empty if it can.
std::string refusal(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape);

// Returns the algorithm that a choice stands for, and why. REQUIRES: shape.members() > 1; refusal()
// is empty.
ChosenAlgorithm resolve(const CollectiveTask& task, AlgorithmChoice choice,
                        const GroupShape& shape);

// Throws ConfigError if there is a refusal(), or if the algorithm can do the operation with equal
// shards but not with a matrix. REQUIRES: shape.members() > 1; task.root is a member; kCustom:
// task.steps are for this operation and number of members. The algorithm refers to the tables that
// the task refers to.
std::unique_ptr<CollectiveAlgorithm> choose_algorithm(const CollectiveTask& task,
                                                      AlgorithmChoice choice,
                                                      const GroupShape& shape);

}  // namespace stepsim
