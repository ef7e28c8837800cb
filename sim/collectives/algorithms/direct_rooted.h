// DirectRooted is gather and scatter without relays: every member sends its shard to the root at
// once, or the root sends every member its own, up to 16 at a time. On an idle network the root's
// port is the limit: (n-1)/n S/W (FORMULAS C24).

#pragma once

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class DirectRooted final : public FlatAlgorithm {
 public:
  // REQUIRES: the operation is gather or scatter.
  DirectRooted(const CollectiveTask& task, const std::vector<std::uint32_t>& order);

  std::uint32_t lanes() const override { return lanes_; }
  std::uint32_t rounds() const override { return rounds_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  bool gathers() const { return task().op == CollectiveOp::kGather; }

  std::uint32_t lanes_ = 1;
  std::uint32_t rounds_ = 1;
};

}  // namespace stepsim
