// Shift is send-receive and permute. Every member sends its whole buffer at once, `shift` places on
// in the order of the members (not of their places), or to the member that the permutation names. A
// member that would send to itself does nothing. Without contention it takes S/W + one trip.

#pragma once

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class Shift final : public FlatAlgorithm {
 public:
  // REQUIRES: task.permutation names every member once, or is empty.
  Shift(const CollectiveTask& task, const std::vector<std::uint32_t>& order);

  std::uint32_t rounds() const override { return nobody_sends_ ? 0 : 1; }
  std::uint32_t shard_of(std::uint32_t member) const override { return member; }
  std::optional<CollectiveMessage> message(std::uint32_t, std::uint32_t,
                                           std::uint32_t member) const override {
    if (target_[member] == member) return std::nullopt;
    return CollectiveMessage{.to = target_[member], .bytes = task().bytes};
  }
  std::uint32_t receives(std::uint32_t, std::uint32_t, std::uint32_t member) const override {
    return target_[member] == member ? 0 : 1;
  }
  void blocks(std::uint32_t, std::uint32_t, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override {
    out.push_back(member);
  }

 private:
  std::vector<std::uint32_t> target_;  // by member
  bool nobody_sends_ = true;
};

}  // namespace stepsim
