// Bruck takes ceil(log2 n) rounds for any n (Bruck, Ho, Kipnis, Upfal, Weathersby 1997):
//
//   all-gather      in round k a member sends the first min(2^k, n - 2^k) shards that it has,
//                   beginning with its own, to the member 2^k places before it
//   reduce-scatter  the same backwards: the last round first, to the member 2^k places after it,
//                   which adds the shards to its own
//   all-reduce      the one after the other
//
// (n-1)/n S/W + ceil(log2 n) trips, twice that for an all-reduce.

#pragma once

#include <algorithm>

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class Bruck final : public FlatAlgorithm {
 public:
  // REQUIRES: the operation is all-reduce, all-gather or reduce-scatter.
  using FlatAlgorithm::FlatAlgorithm;

  std::uint32_t rounds() const override {
    return rounds_of_doubling(members()) * (task().op == CollectiveOp::kAllReduce ? 2 : 1);
  }
  std::optional<CollectiveMessage> message(std::uint32_t, std::uint32_t round,
                                           std::uint32_t member) const override {
    const Sent what = sent(round, member);
    return CollectiveMessage{.to = what.to,
                             .bytes = bytes_of_parts(what.first, what.count, members()),
                             .reduce = what.reduce};
  }
  std::uint32_t receives(std::uint32_t, std::uint32_t, std::uint32_t) const override { return 1; }
  void blocks(std::uint32_t, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override {
    const Sent what = sent(round, member);
    append_parts(what.first, what.count, members(), out);
  }

 private:
  struct Sent {
    std::uint32_t to = 0;
    std::uint32_t first = 0;  // shard
    std::uint32_t count = 0;
    bool reduce = false;
  };
  Sent sent(std::uint32_t round, std::uint32_t member) const {
    const std::uint32_t doublings = rounds_of_doubling(members());
    const std::uint32_t position = position_of(member);
    const bool scatters = task().op != CollectiveOp::kAllGather && round < doublings;
    const std::uint32_t distance =
        scatters ? 1U << (doublings - 1 - round) : 1U << (round % doublings);
    const std::uint32_t count = std::min(distance, members() - distance);
    if (!scatters) {
      return {.to = member_at((position + members() - distance) % members()),
              .first = position,
              .count = count};
    }
    const std::uint32_t to = (position + distance) % members();
    return {.to = member_at(to), .first = to, .count = count, .reduce = true};
  }
};

}  // namespace stepsim
