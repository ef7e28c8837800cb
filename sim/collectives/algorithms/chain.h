// Chain is broadcast and reduce along the row of members, in chunks that follow each other: the
// root sends to the next member, which passes on what it has while the rest is coming. Reduce runs
// the row backwards and adds. With C chunks n - 2 + C rounds of S/(C W) + trip each; many chunks
// make it S/W (FORMULAS C24). Best for large data.

#pragma once

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class Chain final : public FlatAlgorithm {
 public:
  // REQUIRES: the operation is broadcast or reduce.
  Chain(const CollectiveTask& task, const std::vector<std::uint32_t>& order)
      : FlatAlgorithm(task, order), chunks_(pipeline_chunks(task.bytes, members())) {}

  std::uint32_t rounds() const override { return members() - 2 + chunks_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  std::uint32_t shards() const override { return chunks_; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  bool reduces() const { return task().op == CollectiveOp::kReduce; }
  // Returns the number of members before this one in the direction of the data.
  std::uint32_t hops_before(std::uint32_t member) const;

  std::uint32_t chunks_;
};

}  // namespace stepsim
