// choose_algorithm() turns a choice and the shape of a group into the algorithm that runs.
//
// `auto` goes by shape and size:
//
//   all-reduce, all-gather, reduce-scatter
//     torus axes take multi-axis rings, a single wrapped axis a bidirectional ring, a line or a
//     switched group one ring; members over several switched levels go hierarchically. On switches
//     a second direction gains nothing: one ring already fills each port both ways. Where trips
//     weigh more than bytes (below), groups on switches take an algorithm of log2 n rounds if it
//     has a lower estimate: halving and doubling for powers of two, else a double binary tree or
//     Bruck's all-gather. These send no more bytes than a ring.
//   all-to-all   hop by hop on a torus; else direct up to 64 members, pairwise above
//   broadcast, reduce   chain or binomial tree, by the lower estimate
//   the others   the only one, or direct
//
// The estimate is alpha-beta in bytes: kTripBytes for each round, and what the busiest port sends.
// It stands for a trip of 1.3 us at 50 GB/s; the shape knows nothing of the links themselves.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/collective.h"

namespace stepsim {

inline constexpr std::int64_t kTripBytes = 64 << 10;

struct ChosenAlgorithm {
  AlgorithmChoice choice = AlgorithmChoice::kRing;  // never kAuto
  std::string why;                                  // a sentence
};

// Algorithms that can do this in this group, without kAuto and kCustom. Never empty.
std::vector<AlgorithmChoice> algorithms_for(CollectiveOp op, const GroupShape& shape);

// Why it can't, and which can: "can't do a broadcast; there are: chain, binomial-tree". Empty if it
// can.
std::string refusal(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape);

// What the choice stands for. REQUIRES: shape.members() > 1; refusal() is empty.
ChosenAlgorithm resolve(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape,
                        Bytes bytes);

// The same for a task: shards that a matrix makes unequal can't go hop by hop over a torus.
ChosenAlgorithm resolve(const CollectiveTask& task, AlgorithmChoice choice,
                        const GroupShape& shape);

// Throws ConfigError where there is a refusal(), and where the algorithm can't do by a matrix what
// it can do with equal shards. REQUIRES: shape.members() > 1; task.root is a member; kCustom:
// task.steps are for this operation and so many members. What is chosen keeps what the task refers
// to.
std::unique_ptr<CollectiveAlgorithm> choose_algorithm(const CollectiveTask& task,
                                                      AlgorithmChoice choice,
                                                      const GroupShape& shape);

}  // namespace stepsim
