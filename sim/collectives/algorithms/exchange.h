// Exchange is everybody to everybody: all-to-all, and all-gather and reduce-scatter by direct
// messages.
//
//   direct    all n - 1 messages of a member leave at once: a lane each, one round
//   pairwise  n - 1 rounds: in round r to the member r + 1 places on (Thakur, Rabenseifner, Gropp
//             2005), so that every member sends to one and receives from one at a time
//
// An all-to-all with a matrix leaves out pairs that exchange nothing. Its slowest port decides: the
// max over members of the bytes sent or received, over W.
//
// On an idle switch with a port of W bytes/s one way: direct (n-1)/n S/W + one trip, pairwise
// (n-1) (S/(n W) + trip) (FORMULAS C7).

#pragma once

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class Exchange final : public FlatAlgorithm {
 public:
  Exchange(const CollectiveTask& task, const std::vector<std::uint32_t>& order, bool at_once)
      : FlatAlgorithm(task, order), at_once_(at_once) {}

  std::uint32_t lanes() const override { return at_once_ ? members() - 1 : 1; }
  std::uint32_t rounds() const override { return at_once_ ? 1 : members() - 1; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  bool in_turn() const override { return !at_once_; }
  std::uint32_t shards() const override;
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  std::uint32_t partner(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const;

  bool at_once_;
};

}  // namespace stepsim
