// BinomialTree is broadcast, reduce, gather and scatter in ceil(log2 n) rounds. Counted from the
// root, member v of broadcast and scatter gets everything it needs from v without its lowest one
// bit, farthest first; reduce and gather run the same edges backwards. Broadcast and reduce cost
// ceil(log2 n) (S/W + trip); gather and scatter carry whole subtrees: (n-1)/n S/W + log2 n trips
// for a power of two (Thakur, Rabenseifner, Gropp 2005). Best for small data.

#pragma once

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class BinomialTree final : public FlatAlgorithm {
 public:
  // REQUIRES: the operation is broadcast, reduce, gather or scatter.
  using FlatAlgorithm::FlatAlgorithm;

  std::uint32_t rounds() const override { return rounds_of_doubling(members()); }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  std::uint32_t shards() const override { return whole() ? 1 : members(); }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  bool whole() const {
    return task().op == CollectiveOp::kBroadcast || task().op == CollectiveOp::kReduce;
  }
  bool to_root() const {
    return task().op == CollectiveOp::kReduce || task().op == CollectiveOp::kGather;
  }
  std::uint32_t distance(std::uint32_t round) const {
    return 1U << (to_root() ? round : rounds() - 1 - round);
  }
  // Return whether the member at `place` is at the far end v + distance of an edge in this round,
  // or at its near end v.
  bool is_far_end(std::uint32_t round, std::uint32_t place) const;
  bool is_near_end(std::uint32_t round, std::uint32_t place) const;
  struct Subtree {
    std::uint32_t place;
    std::uint32_t members;
  };
  Subtree subtree(std::uint32_t round, std::uint32_t member) const;
};

}  // namespace stepsim
