// The terms of collective communication: operations, algorithms to choose from, and the shape of a
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
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

// The most bytes of one member: 16 TiB. Their products with numbers of members fit in 64 bits.
inline constexpr Bytes kMostCollectiveBytes(std::int64_t{1} << 44);

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

// Returns true for all-reduce, all-gather and reduce-scatter. In these every member has a part of
// the result, so the data can go round a ring.
constexpr bool is_ring_op(CollectiveOp op) {
  return op == CollectiveOp::kAllReduce || op == CollectiveOp::kAllGather ||
         op == CollectiveOp::kReduceScatter;
}

// An algorithm, or `auto`: the number of its row in the algorithm table, from 1
// (sim/collectives/algorithm_table.h), which declares all about it: name, operations, groups,
// estimate and maker. docs/collectives.md describes them. Algorithms that code speaks of have an
// enumerator; their rows come first, in this order.
enum class AlgorithmChoice : std::uint8_t {
  kAuto,  // by the shape of the group and the size
  kRing,
  kBidirectionalRing,
  kHierarchical,
  kMultiAxis,
  kAxisAfterAxis,
  kDirect,
  kPairwise,
  kTorusAllToAll,
  kRootTrees,
  kBinomialTree,
  kChain,
  kDoubleBinaryTree,
  kHalvingDoubling,
  kRecursiveDoubling,
  kBruck,
  kReduceBroadcast,
  kDissemination,
  kRotatedRings,
  kOverlappedLevels,
  kPxn,
  kNodeForwarding,
  kNvls,
  kSharp,
  kNvlsTree,
  kPackedTrees,
  kCustom,  // steps from a file (step_list.h)
};
std::string_view name_of(AlgorithmChoice choice);  // "ring"

// ExpertHalf says that an all-to-all is half of an exchange of tokens with experts, a copy for each
// expert: dispatch there, combine back.
struct ExpertHalf {
  bool combines = false;
  std::int64_t tokens = 0;   // of a member; at least 1
  std::int64_t top_k = 1;    // experts that each goes to
  std::int64_t experts = 1;  // of all members
  Bytes token_bytes{};       // of a copy, with its scales
  // Members that hold all experts and have no tokens of their own; 0: all members hold experts.
  std::int64_t expert_chips = 0;
  friend bool operator==(const ExpertHalf&, const ExpertHalf&) = default;
};

// GroupDimension is one dimension of a group: its members form a line, a ring, or stand around a
// switch.
struct GroupDimension {
  std::uint32_t size = 1;
  bool torus_axis = false;
  bool wraps = false;   // torus axes: the last is linked to the first
  bool twists = false;  // torus axes: closes half a round further on (Level::twists)
  friend bool operator==(const GroupDimension&, const GroupDimension&) = default;
};

// SwitchTree is a tree of switches with the members as its leaves. Its switches may add up the data
// from below and copy the data from above.
struct SwitchTree {
  struct Node {
    std::uint32_t parent = 0;  // the root is its own parent
    LinkId up;                 // to the parent; the root has none
    LinkId down;               // from the parent; the root has none
    friend bool operator==(const Node&, const Node&) = default;
  };
  std::vector<Node> nodes;  // members, then switches; empty: no such tree
  friend bool operator==(const SwitchTree&, const SwitchTree&) = default;
};

// MemberWays are the ways between members that pass through no other chip: a link of their own, or
// links to switches and on.
struct MemberWays {
  struct Way {
    std::uint32_t from = 0;            // member
    std::uint32_t to = 0;              // member
    std::vector<std::uint32_t> links;  // numbers of the links, from `from` on
    friend bool operator==(const Way&, const Way&) = default;
  };
  std::vector<Way> ways;         // by from, then to
  std::vector<Bandwidth> links;  // the bandwidth of each
  Duration trip{};               // the longest latency of a way
  bool empty() const { return ways.empty(); }
  friend bool operator==(const MemberWays&, const MemberWays&) = default;
};

// GroupShape is what an algorithm may know about the places of its members. Member order[p] is at
// position p of the box of dimensions (innermost fastest). Algorithms without dimensions (ring,
// chain, trees of members) use the members' own numbers instead: the order in which they were
// given.
struct GroupShape {
  std::vector<GroupDimension> dimensions;  // none of size 1; empty: a single member
  std::vector<std::uint32_t> order;
  // Members of each node, in the order of positions, where nodes have different numbers of them, or
  // members at different places. The members are then one dimension. Empty: there is one node, or
  // the members fill a box.
  std::vector<std::uint32_t> uneven_nodes{};
  // Members of every node, where levels inside nodes and between them are known and all nodes have
  // equally many. Unset: the first dimension stands for a node.
  std::optional<std::uint32_t> per_node{};
  SwitchTree tree{};
  // For each place in a node, the tree of the members at that place of every
  // node. Empty if there is a tree of all members, or if any place has no tree.
  std::vector<SwitchTree> rail_trees{};
  // For each node, the tree of its members. Empty unless every node has one switch between them.
  std::vector<SwitchTree> node_trees{};
  // Empty unless trees over the members' own links can be packed (sim/hardware/member_ways.h).
  MemberWays ways{};
  std::uint32_t members() const { return static_cast<std::uint32_t>(order.size()); }
  std::uint32_t node_size() const { return per_node.value_or(dimensions.front().size); }
  bool is_torus() const;        // whether every dimension is a torus axis
  bool has_torus_axis() const;  // whether at least one dimension is
  bool twists() const;          // whether it is a whole twisted torus
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

}  // namespace stepsim
