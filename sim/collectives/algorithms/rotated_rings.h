// RotatedRings uses as many rings as a node has members. Each carries its share of the data through
// all members of one node, then to the next node. Each crosses between two nodes at another member
// (network card, rail), so that all cards of a node work at once. If the rings shared one card, all
// data of a node would have to pass that card (FORMULAS C9; NCCL builds one ring per card).
//
//   2 nodes of 4:  ring 0   0 2 3 1 | 5 6 7 4 |      nodes are entered and left on the same rail,
//                  ring 1   1 3 0 2 | 6 7 4 5 |      whose cards share a leaf switch
//                  ring 2   ...
//
// Where members lie unevenly in nodes there are as many rings as the smallest node has members.
// Each passes through all members of a node all the same: 40 and 32 of two racks make 32 rings.
//
// Each ring is the ring of axis_rings.h over its own order of the members. On an idle network with
// d members a node and cards of W: reduce-scatter or all-gather (n-1)/n S/(d W) + (n-1) trips, as
// long as the switch in the node is at least d - 1 times as fast; all-reduce twice that. The trips
// are those round the ring, of which one a node is between nodes; stepped, where a member sends
// when its last message has arrived, each is as long as the longest.

#pragma once

#include <vector>

#include "sim/collectives/algorithm.h"

namespace stepsim {

// Returns the members of each ring, in its order. REQUIRES: as node_rows(). O(rings x members).
std::vector<std::vector<std::uint32_t>> rings_over_nodes(const GroupShape& shape);

class RotatedRings final : public CollectiveAlgorithm {
 public:
  // The first dimension is the node, unless there are uneven nodes. REQUIRES: at least two
  // dimensions, or uneven nodes; the operation is all-reduce, all-gather or reduce-scatter.
  RotatedRings(const CollectiveTask& task, const GroupShape& shape);

  std::uint32_t members() const override { return n_; }
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(rings_.size()); }
  std::uint32_t rounds() const override {
    return (n_ - 1) * (task_.op == CollectiveOp::kAllReduce ? 2 : 1);
  }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t, std::uint32_t, std::uint32_t) const override { return 1; }
  bool relays() const override { return true; }
  LaneSum lane_sum(std::uint32_t lane, std::uint32_t member) const override;
  std::uint32_t shards() const override { return n_; }
  std::uint32_t pieces() const override { return lanes(); }  // piece p of each shard is ring p's
  std::uint32_t shard_of(std::uint32_t member) const override { return member; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  struct Ring {
    std::vector<std::uint32_t> members;  // by place
    std::vector<std::uint32_t> place;    // by member
    std::int64_t elements = 0;           // of all shards, its share
  };
  bool adds(std::uint32_t round) const {
    return task_.op != CollectiveOp::kAllGather && round < n_ - 1;
  }
  std::uint32_t shard(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const;
  // Elements of the share of ring `lane` in a shard.
  std::int64_t share(std::uint32_t lane, std::uint32_t of_shard) const;

  CollectiveTask task_;
  std::uint32_t n_;
  std::vector<Ring> rings_;
};

}  // namespace stepsim
