// RootTrees is gather and scatter over a torus that keeps all ports of the root busy. Every
// neighbour of the root is the top of a tree. The trees share the other members as evenly as
// possible, and data go only along the links of the trees.
//
//        o - o   o       3 x 3 members, neither axis wrapped, with the root R in the middle: four
//            |   |       trees of two members each
//        o - R - o
//        |   |
//        o   o - o
//
// Trees have no member and no link in common, so the busiest link is the one between the root and
// its largest tree. With P ports of the root, N members, S bytes (what the root has in all) and
// links of W bytes/s one way: S ceil((N-1)/P) / (N W) plus a trip for each level of the deepest
// tree. Straight messages in dimension order fill two ports at most (direct_rooted.h).
//
// A gather goes level by level: in round k a member sends up what comes from the members k levels
// below it. A scatter is the same backwards in time: what goes farthest leaves first. It has a lane
// for each place among the children of a member.
//
// The trees begin as shortest paths to the root and are balanced by moving whole branches. On
// wrapped axes they differ by at most one member. At a root inside a line, the number of members on
// each side of the line limits the balance.

#pragma once

#include <optional>
#include <vector>

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class RootTrees final : public FlatAlgorithm {
 public:
  // REQUIRES: shape.is_torus(); the operation is gather or scatter.
  RootTrees(const CollectiveTask& task, const GroupShape& shape);

  std::uint32_t lanes() const override { return lanes_; }
  std::uint32_t rounds() const override { return rounds_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  bool gated() const override { return lanes_ > 1; }
  std::optional<LaneGate> gate(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const override;
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  struct Node {                             // by member
    std::optional<std::uint32_t> parent{};  // the root has none
    std::vector<std::uint32_t> children{};
    std::uint32_t place = 0;                          // among the children of its parent
    std::vector<std::vector<std::uint32_t>> below{};  // members, by levels below; itself first
  };
  bool gathers() const { return task().op == CollectiveOp::kGather; }
  // Returns the members whose data pass between `member` and its parent in this round; null: no
  // message.
  const std::vector<std::uint32_t>* carried(std::uint32_t round, std::uint32_t member) const;
  // Returns the member below the link over which `member` sends in this round and lane.
  std::optional<std::uint32_t> lower_end(std::uint32_t lane, std::uint32_t round,
                                         std::uint32_t member) const;

  std::vector<Node> nodes_;
  std::uint32_t lanes_ = 1;
  std::uint32_t rounds_ = 0;
};

}  // namespace stepsim
