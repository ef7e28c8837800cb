// Dissemination is a barrier. In round k every member tells the member 2^k places on that it has
// arrived, and which others it has heard of. After ceil(log2 n) rounds all members have heard of
// all (Hensgen, Finkel, Manber 1988). There are no data: each round costs one trip.

#pragma once

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class Dissemination final : public FlatAlgorithm {
 public:
  using FlatAlgorithm::FlatAlgorithm;

  std::uint32_t rounds() const override { return rounds_of_doubling(members()); }
  std::optional<CollectiveMessage> message(std::uint32_t, std::uint32_t round,
                                           std::uint32_t member) const override {
    const std::uint32_t to = member_at((position_of(member) + (1U << round)) % members());
    return CollectiveMessage{.to = to, .bytes = {}, .reduce = true};
  }
  std::uint32_t receives(std::uint32_t, std::uint32_t, std::uint32_t) const override { return 1; }
  std::uint32_t shards() const override { return 1; }
  void blocks(std::uint32_t, std::uint32_t, std::uint32_t,
              std::vector<std::uint32_t>& out) const override {
    out.push_back(0);
  }
};

}  // namespace stepsim
