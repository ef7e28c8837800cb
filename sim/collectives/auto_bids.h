// AutoBid is the cost that `auto` expects of an algorithm in a group. The lowest bid wins. These
// functions make the bids of the algorithm table.
//
//   all-reduce, all-gather, reduce-scatter
//     torus axes take rotated axis orders, slices of a torus go hierarchically, and so do several
//     switched levels; else one ring. Members that are linked directly pack trees onto all of their
//     links, and so do tori whose axes have links of unequal width. On switches a second direction
//     gains nothing, since one ring already fills each port both ways. Where trips weigh more than
//     bytes, groups on switches may take an algorithm of log2 n rounds: halving and doubling for
//     powers of two, else a double binary tree or Bruck's all-gather. None of them sends more bytes
//     in all than a ring.
//   all-to-all          hop by hop on a torus; else direct up to 64 members, pairwise above. By a
//                       matrix that is shared in nodes, the relay that shares
//   broadcast, reduce   chain or binomial tree
//   gather, scatter     trees from all ports of the root on a torus of several axes; else direct
//   the others          the only one
//
// The estimate is alpha-beta in bytes: kTripBytes for each round, and what the busiest port sends.
// A trip stands for 1.3 us at 50 GB/s; the shape knows nothing about the links themselves.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/collective.h"

namespace stepsim {

inline constexpr std::int64_t kTripBytes = 64 << 10;
// Larger groups take one ring or levels: almost as fast, and quick to compute.
inline constexpr std::uint32_t kMostInRotatedRings = 1024;

struct AutoBid {
  std::int64_t bytes = 0;  // 0: no algorithm that can run in the group is better
  std::string why;         // a sentence
};

using Bid = std::optional<AutoBid>;

Bid bid_never(const CollectiveTask& task, const GroupShape& shape);
Bid bid_rotated_rings(const CollectiveTask& task, const GroupShape& shape);
Bid bid_ring(const CollectiveTask& task, const GroupShape& shape);
Bid bid_packed_trees(const CollectiveTask& task, const GroupShape& shape);
Bid bid_hierarchical(const CollectiveTask& task, const GroupShape& shape);
Bid bid_multi_axis(const CollectiveTask& task, const GroupShape& shape);
Bid bid_halving_doubling(const CollectiveTask& task, const GroupShape& shape);
Bid bid_recursive_doubling(const CollectiveTask& task, const GroupShape& shape);
Bid bid_bruck(const CollectiveTask& task, const GroupShape& shape);
Bid bid_double_binary_tree(const CollectiveTask& task, const GroupShape& shape);
Bid bid_direct(const CollectiveTask& task, const GroupShape& shape);
Bid bid_pairwise(const CollectiveTask& task, const GroupShape& shape);
Bid bid_torus_all_to_all(const CollectiveTask& task, const GroupShape& shape);
Bid bid_node_forwarding(const CollectiveTask& task, const GroupShape& shape);
Bid bid_pxn(const CollectiveTask& task, const GroupShape& shape);
Bid bid_root_trees(const CollectiveTask& task, const GroupShape& shape);
Bid bid_chain(const CollectiveTask& task, const GroupShape& shape);
Bid bid_binomial_tree(const CollectiveTask& task, const GroupShape& shape);
Bid bid_dissemination(const CollectiveTask& task, const GroupShape& shape);

}  // namespace stepsim
