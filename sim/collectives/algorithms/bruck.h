// Bruck is an all-gather in ceil(log2 n) rounds for any n: in round k a member sends the first
// min(2^k, n - 2^k) shards that it has, beginning with its own, to the member 2^k places before it
// (Bruck, Ho, Kipnis, Upfal, Weathersby 1997). (n-1)/n S/W + ceil(log2 n) trips.

#pragma once

#include <algorithm>

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class Bruck final : public FlatAlgorithm {
 public:
  // REQUIRES: the operation is all-gather.
  using FlatAlgorithm::FlatAlgorithm;

  std::uint32_t rounds() const override { return rounds_of_doubling(members()); }
  std::optional<CollectiveMessage> message(std::uint32_t, std::uint32_t round,
                                           std::uint32_t member) const override {
    const std::uint32_t position = position_of(member);
    return CollectiveMessage{.to = member_at((position + members() - (1U << round)) % members()),
                             .bytes = bytes_of_parts(position, count(round), members())};
  }
  std::uint32_t receives(std::uint32_t, std::uint32_t, std::uint32_t) const override { return 1; }
  void blocks(std::uint32_t, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override {
    append_parts(position_of(member), count(round), members(), out);
  }

 private:
  std::uint32_t count(std::uint32_t round) const {
    return std::min(1U << round, members() - (1U << round));
  }
};

}  // namespace stepsim
