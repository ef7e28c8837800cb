// The words of collective communication: operations, algorithms to choose from, and the shape of a
// group of members.
//
// Sizes are those of nccl-tests: `bytes` is the larger of one member's send and receive buffer.
// With n members and S = bytes / n:
//
//   all-reduce      every member has `bytes`, ends with the sum of all
//   all-gather      every member has its shard of S, ends with all n shards
//   reduce-scatter  every member has n shards, ends with the sum of its own shard
//   all-to-all      every member has n shards, one for each member, ends with one from each
//   broadcast       the root has `bytes`, everybody ends with them
//   reduce          every member has `bytes`, the root ends with the sum
//   gather          every member has its shard of S, the root ends with all n
//   scatter         the root has n shards, every member ends with its own
//   barrier         no data: nobody goes on before everybody is there
//   send-receive    every member sends `bytes` to the next one (as in nccl-tests)
//   permute         every member sends `bytes` to the one `shift` places on

#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

enum class CollectiveOp : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kBarrier,
  kSendReceive,
  kPermute,
};
inline constexpr std::array kCollectiveOps = {
    CollectiveOp::kAllReduce,   CollectiveOp::kAllGather, CollectiveOp::kReduceScatter,
    CollectiveOp::kAllToAll,    CollectiveOp::kBroadcast, CollectiveOp::kReduce,
    CollectiveOp::kGather,      CollectiveOp::kScatter,   CollectiveOp::kBarrier,
    CollectiveOp::kSendReceive, CollectiveOp::kPermute};
std::string_view name_of(CollectiveOp op);  // "all-reduce"
bool is_ring_op(CollectiveOp op);           // all-reduce, all-gather, reduce-scatter

// What each runs, and when: sim/collectives/choose_algorithm.h and docs/collectives.md.
enum class AlgorithmChoice : std::uint8_t {
  kAuto,               // by the shape of the group and the size
  kRing,               // one ring through all members, one direction
  kBidirectionalRing,  // two rings, opposite directions, half of the data each
  kHierarchical,       // level by level: inside the node, then across
  kMultiAxis,          // torus axes, in rotated orders and both directions at once
  kAxisAfterAxis,      // torus axes one after another, both directions (naive)
  kDirect,             // everybody to everybody (or the root) at once
  kPairwise,           // all-to-all in n - 1 exchanges, one partner at a time
  kTorusAllToAll,      // hop by hop along the axes, in rotated orders
  kChain,              // root to next to next, pipelined in chunks
  kBinomialTree,       // log n rounds from or to the root
  kDoubleBinaryTree,   // two trees, half of the data each, pipelined in chunks
  kHalvingDoubling,    // recursive halving, then recursive doubling
  kRecursiveDoubling,  // exchange all one has with partners at distance 1, 2, 4, ...
  kBruck,              // all-gather in ceil(log2 n) rounds for any n
  kReduceBroadcast,    // everybody to the root and back (naive)
  kDissemination,      // a word to the members 1, 2, 4, ... places on
  kRotatedRings,       // a ring for each network card of a node
  kOverlappedLevels,   // hierarchical in chunks: one level works while the next one does
  kPxn,                // all-to-all: in the node to the destination's rail, then over the rail
  kNodeForwarding,     // all-to-all: over the rail to the destination's node, then inside it
  kNvls,               // the one switch between all members adds and copies
  kSharp,              // a tree of switches adds and copies, or one a rail
  kNvlsTree,           // the switch in each node adds and copies, trees of members between nodes
  kCustom,             // steps that somebody has written down (step_list.h)
};
inline constexpr std::array kAlgorithmChoices = {AlgorithmChoice::kAuto,
                                                 AlgorithmChoice::kRing,
                                                 AlgorithmChoice::kBidirectionalRing,
                                                 AlgorithmChoice::kHierarchical,
                                                 AlgorithmChoice::kMultiAxis,
                                                 AlgorithmChoice::kAxisAfterAxis,
                                                 AlgorithmChoice::kDirect,
                                                 AlgorithmChoice::kPairwise,
                                                 AlgorithmChoice::kTorusAllToAll,
                                                 AlgorithmChoice::kChain,
                                                 AlgorithmChoice::kBinomialTree,
                                                 AlgorithmChoice::kDoubleBinaryTree,
                                                 AlgorithmChoice::kHalvingDoubling,
                                                 AlgorithmChoice::kRecursiveDoubling,
                                                 AlgorithmChoice::kBruck,
                                                 AlgorithmChoice::kReduceBroadcast,
                                                 AlgorithmChoice::kDissemination,
                                                 AlgorithmChoice::kRotatedRings,
                                                 AlgorithmChoice::kOverlappedLevels,
                                                 AlgorithmChoice::kPxn,
                                                 AlgorithmChoice::kNodeForwarding,
                                                 AlgorithmChoice::kNvls,
                                                 AlgorithmChoice::kSharp,
                                                 AlgorithmChoice::kNvlsTree,
                                                 AlgorithmChoice::kCustom};
std::string_view name_of(AlgorithmChoice choice);  // "ring"

// One dimension of a group: its members stand in a line, a ring, or around a switch.
struct GroupDimension {
  std::uint32_t size = 1;
  bool torus_axis = false;
  bool wraps = false;  // torus axes: the last is linked to the first
  friend bool operator==(const GroupDimension&, const GroupDimension&) = default;
};

// A tree of switches with the members as its leaves, by which switches may add up what comes from
// below and copy what comes from above.
struct SwitchTree {
  struct Node {
    std::uint32_t parent = 0;  // of the root: itself
    LinkId up;                 // to the parent, and back; not of the root
    LinkId down;
    friend bool operator==(const Node&, const Node&) = default;
  };
  std::vector<Node> nodes;  // members, then switches; empty: there is no such tree
  friend bool operator==(const SwitchTree&, const SwitchTree&) = default;
};

// What an algorithm may know of its members' places. Position p of the box of dimensions
// (innermost fastest) is taken by member order[p].
struct GroupShape {
  std::vector<GroupDimension> dimensions;  // none of size 1; empty: a single member
  std::vector<std::uint32_t> order;
  SwitchTree tree{};
  // Where there is no tree of all, and the first dimension is a node: of the members at the same
  // place of every node, for each place; empty unless there is one for each.
  std::vector<SwitchTree> rail_trees{};
  // The same: of the members of each node, where each has one switch between its members.
  std::vector<SwitchTree> node_trees{};
  std::uint32_t members() const { return static_cast<std::uint32_t>(order.size()); }
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

}  // namespace stepsim
