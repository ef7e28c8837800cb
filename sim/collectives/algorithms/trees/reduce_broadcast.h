// ReduceBroadcast is the naive all-reduce. All members send everything to the first member at once,
// which adds it up and sends the sum to one member after another. Its port moves 2 (n-1) S
// (FORMULAS C3).

#pragma once

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class ReduceBroadcast final : public FlatAlgorithm {
 public:
  // REQUIRES: the operation is all-reduce.
  using FlatAlgorithm::FlatAlgorithm;

  std::uint32_t rounds() const override { return members(); }
  std::optional<CollectiveMessage> message(std::uint32_t, std::uint32_t round,
                                           std::uint32_t member) const override {
    const bool is_root = member == task().root;
    if (is_root == (round == 0)) return std::nullopt;  // the others send in round 0 only
    return CollectiveMessage{.to = is_root ? member_after_root(round) : task().root,
                             .bytes = task().bytes,
                             .reduce = !is_root};
  }
  std::uint32_t receives(std::uint32_t, std::uint32_t round, std::uint32_t member) const override {
    if (round == 0) return member == task().root ? members() - 1 : 0;
    return place_of(member) == round ? 1 : 0;
  }
  std::uint32_t shards() const override { return 1; }
  void blocks(std::uint32_t, std::uint32_t, std::uint32_t,
              std::vector<std::uint32_t>& out) const override {
    out.push_back(0);
  }
};

}  // namespace stepsim
