// Shift is send-receive and permute: every member sends its whole buffer `shift` places on, in the
// order of the members (not of their places), all at once. Without contention S/W + one trip.

#pragma once

#include "sim/collectives/flat_algorithm.h"

namespace stepsim {

class Shift final : public FlatAlgorithm {
 public:
  Shift(const CollectiveTask& task, const std::vector<std::uint32_t>& order)
      : FlatAlgorithm(task, order),
        shift_(task.op == CollectiveOp::kPermute ? task.shift % members() : 1) {}

  std::uint32_t rounds() const override { return shift_ == 0 ? 0 : 1; }
  std::uint32_t shard_of(std::uint32_t member) const override { return member; }
  std::optional<CollectiveMessage> message(std::uint32_t, std::uint32_t,
                                           std::uint32_t member) const override {
    return CollectiveMessage{.to = (member + shift_) % members(), .bytes = task().bytes};
  }
  std::uint32_t receives(std::uint32_t, std::uint32_t, std::uint32_t) const override { return 1; }
  void blocks(std::uint32_t, std::uint32_t, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override {
    out.push_back(member);
  }

 private:
  std::uint32_t shift_;
};

}  // namespace stepsim
