// HalvingDoubling is recursive halving and recursive doubling (Rabenseifner 2004; Thakur,
// Rabenseifner, Gropp 2005):
//
//   all-reduce, halving-doubling    halving: exchange halves of what is left with partners at
//                                   distance p/2, p/4, ..., 1; doubling: the same back. 2 (p-1)/p
//                                   S/W + 2 log2 p trips
//   all-reduce, recursive doubling  exchange everything with partners at distance 1, 2, 4, ...:
//                                   log2 p (S/W + trip). Best for small data
//   reduce-scatter, all-gather      the halving alone, the doubling alone: (n-1)/n S/W + log2 n
//                                   trips; n a power of two
//
// p is the largest power of two up to n. In an all-reduce the other n - p members give their data
// to a neighbour first and get the result from it at the end: two more rounds of S/W.

#pragma once

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class HalvingDoubling final : public FlatAlgorithm {
 public:
  // `whole`: recursive doubling. REQUIRES: all-reduce; or reduce-scatter or all-gather, not whole,
  // of a power of two members.
  HalvingDoubling(const CollectiveTask& task, const std::vector<std::uint32_t>& order, bool whole);

  std::uint32_t rounds() const override;
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  std::uint32_t shards() const override { return power_; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  enum class Phase { kFold, kWhole, kHalve, kDouble, kUnfold };
  struct Step {
    Phase phase;
    std::uint32_t number;
  };
  Step step(std::uint32_t round) const;
  struct Sent {
    std::uint32_t to = 0;
    std::uint32_t begin = 0;  // shards
    std::uint32_t count = 0;
    bool reduce = false;
  };
  std::optional<Sent> sent(std::uint32_t round, std::uint32_t member) const;

  bool whole_;
  std::uint32_t power_;   // p
  std::uint32_t extra_;   // n - p
  std::uint32_t levels_;  // log2 p
};

}  // namespace stepsim
