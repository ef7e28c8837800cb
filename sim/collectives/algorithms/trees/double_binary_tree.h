// DoubleBinaryTree is an all-reduce over two trees at once, half of the data each: reduced towards
// the root, broadcast back, in chunks that follow each other. The trees are in-order binary trees;
// the second is the first mirrored (n even) or moved by one (n odd), so that who is an inner node
// of one is a leaf of the other and nobody sends more than twice the data (Sanders, Speck, Traeff
// 2009; as in NCCL).
//
//   8 members, tree 0     0
//                         4             a chunk takes depth trips up and depth trips down
//                       2   6
//                      1 3 5 7
//
// Each tree has three lanes: one up, where a node waits for both children before it sends on, and
// one down for each child. With C chunks and depth D = ceil(log2 n) a lane has C + D - 1 rounds;
// the ports of large data carry 2 S, so that a chunk of S/(2 C) takes 4 chunk times of a port. Best
// for medium data on many members.

#pragma once

#include <optional>
#include <vector>

#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {

class DoubleBinaryTree final : public FlatAlgorithm {
 public:
  // REQUIRES: the operation is all-reduce.
  DoubleBinaryTree(const CollectiveTask& task, const std::vector<std::uint32_t>& order);

  std::uint32_t lanes() const override { return 2 * kLanesOfTree; }
  std::uint32_t rounds() const override { return chunks_ + depth_ - 1; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  bool gated() const override { return true; }
  std::optional<LaneGate> gate(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const override;
  std::uint32_t shards() const override { return 2 * chunks_; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  static constexpr std::uint32_t kLanesOfTree = 3;  // up, down to child 0, down to child 1
  struct Node {
    std::uint32_t parent = 0;  // node 0 is its own parent
    std::vector<std::uint32_t> children;
    std::uint32_t place = 0;  // among its parent's children
    std::uint32_t depth = 0;
  };
  static bool is_up(std::uint32_t lane) { return lane % kLanesOfTree == 0; }
  std::uint32_t node_of(std::uint32_t lane, std::uint32_t member) const;
  std::uint32_t member_of(std::uint32_t lane, std::uint32_t node) const;
  // Returns the chunk that a node sends in a round of a lane; nullopt if it sends none.
  std::optional<std::uint32_t> chunk(std::uint32_t lane, std::uint32_t round,
                                     std::uint32_t node) const;

  std::vector<Node> nodes_;  // tree 0
  std::uint32_t depth_ = 0;
  std::uint32_t chunks_;
};

}  // namespace stepsim
