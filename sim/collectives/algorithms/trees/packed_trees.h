// PackedTreesCollective is all-gather, reduce-scatter and all-reduce over trees that are packed
// onto the links between members (tree_packing.h): every link of every member is busy nearly all
// the time, where one ring uses two links of each. An all-reduce is a reduce-scatter, then an
// all-gather.
//
// On an idle network, with links of P bytes/s at the member that has the least and R rounds:
//
//   all-gather, reduce-scatter   (n-1)/n S/P + R t       where no cut between members is narrower
//   all-reduce                   twice that
//
// A shard is cut into as many pieces as make the sum least: many fill the links more evenly, few
// take fewer rounds.
//
// Lanes are the slots of a member's outgoing links (a slot is as wide as the narrowest link), so
// that every link sends its messages one after another. What a message hands on has come in over
// other links: gates name those messages. Where ways lead over switches, members take turns on the
// way into another one, so there all go through the rounds together.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/trees/tree_packing.h"

namespace stepsim {

class PackedTreesCollective final : public CollectiveAlgorithm {
 public:
  // REQUIRES: is_ring_op(task.op); the shape has ways.
  PackedTreesCollective(const CollectiveTask& task, const GroupShape& shape);

  std::uint32_t members() const override { return n_; }
  std::uint32_t lanes() const override { return lanes_; }
  std::uint32_t rounds() const override { return rounds_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  bool gated() const override { return true; }
  void gates(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
             std::vector<LaneGate>& out) const override;
  bool in_step() const override { return true; }
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override {
    return received_[slot(lane, round, member)];
  }
  std::uint32_t shards() const override { return n_; }
  std::uint32_t pieces() const override { return pieces_; }
  std::uint32_t shard_of(std::uint32_t member) const override { return member; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  struct Sent {
    std::uint32_t to = 0;
    std::uint32_t chunk = 0;
    bool reduce = false;
    std::vector<LaneGate> gates;
  };
  // Returns the trees that are the fastest on an idle network, without a library.
  static PackedTrees best(const CollectiveTask& task, const MemberWays& ways,
                          std::uint32_t members);
  void add_reduce_scatter(const PackedTrees& trees);
  void add_all_gather(const PackedTrees& trees);
  // Adds a message, and the gates that came_ has for it.
  void add(const PackedTrees::Send& send, std::uint32_t lane, std::uint32_t round, bool reduce);
  std::size_t slot(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const {
    return (std::size_t{lane} * rounds_ + round) * n_ + member;
  }
  const Sent* sent(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const {
    const std::uint32_t index = sent_of_[slot(lane, round, member)];
    return index == 0 ? nullptr : &sends_[index - 1];
  }

  CollectiveTask task_;
  std::uint32_t n_;
  bool together_;  // a member sends when its whole round before is over
  std::uint32_t pieces_ = 1;
  std::uint32_t lanes_ = 0;
  std::uint32_t rounds_ = 0;
  std::vector<Sent> sends_;
  std::vector<std::uint32_t> sent_of_;       // by slot: place in sends_ + 1; 0: none
  std::vector<std::uint32_t> received_;      // by slot
  std::vector<std::vector<LaneGate>> came_;  // by member and chunk: what brought it; while built
};

}  // namespace stepsim
