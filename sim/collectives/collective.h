// The words of collective communication: operations, algorithms to choose from, and the shape of a
// group of members.
//
// Sizes are those of nccl-tests: `bytes` is the larger of one member's send and receive buffer.
// With n members and S = bytes / n:
//
//   all-reduce      every member has `bytes`, ends with the sum of all
//   all-gather      every member has its shard of S, ends with all n shards
//   reduce-scatter  every member has n shards, ends with the sum of its own shard

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stepsim {

enum class CollectiveOp : std::uint8_t { kAllReduce, kAllGather, kReduceScatter };
std::string_view name_of(CollectiveOp op);  // "all-reduce"

enum class AlgorithmChoice : std::uint8_t {
  kAuto,               // by the shape of the group: see choose_algorithm()
  kRing,               // one ring through all members, one direction
  kBidirectionalRing,  // two rings, opposite directions, half of the data each
  kHierarchical,       // level by level: inside the node, then across
  kMultiAxis,          // torus axes, in rotated orders and both directions at once
};
std::string_view name_of(AlgorithmChoice choice);  // "ring"

// One dimension of a group: its members stand in a line, a ring, or around a switch.
struct GroupDimension {
  std::uint32_t size = 1;
  bool torus_axis = false;
  bool wraps = false;  // torus axes: the last is linked to the first
  friend bool operator==(const GroupDimension&, const GroupDimension&) = default;
};

// What an algorithm may know of its members' places. Position p of the box of dimensions
// (innermost fastest) is taken by member order[p].
struct GroupShape {
  std::vector<GroupDimension> dimensions;  // none of size 1; empty: a single member
  std::vector<std::uint32_t> order;
  std::uint32_t members() const { return static_cast<std::uint32_t>(order.size()); }
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

}  // namespace stepsim
