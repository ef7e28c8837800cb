// DoubleBinaryTree is an all-reduce over two trees at once, half of the data each: reduced towards
// the root, broadcast back, in chunks that follow each other. The trees are in-order binary trees;
// the second is the first mirrored (n even) or moved by one (n odd), so that who is an inner node
// of one is a leaf of the other and nobody sends more than twice the data (Sanders, Speck, Traeff
// 2009; as in NCCL).
//
//   8 members, tree 0     0             a chunk takes depth trips up and depth trips down; the
//                         4             edges have three colours, no two alike at a node, and a
//                       2   6           period of the pipeline is three rounds: in each the edges
//                      1 3 5 7          of one colour carry a chunk up and a chunk down
//
// With C chunks and depth D = ceil(log2 n) there are 3 (C + 2 D - 1) rounds; the ports of
// large data carry 2 S. Stepped, a round lasts as long as the ports that both trees use in it, so
// that large data take up to 3.5 S/W; pipelined 2 S/W. Best for medium data on many members.

#pragma once

#include "sim/collectives/flat_algorithm.h"

namespace stepsim {

class DoubleBinaryTree final : public FlatAlgorithm {
 public:
  // REQUIRES: the operation is all-reduce.
  DoubleBinaryTree(const CollectiveTask& task, const std::vector<std::uint32_t>& order);

  std::uint32_t lanes() const override { return 2; }
  std::uint32_t rounds() const override { return 3 * (chunks_ + 2 * depth_ - 1); }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  std::uint32_t shards() const override { return 2 * chunks_; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  struct Node {
    std::optional<std::uint32_t> parent;
    std::optional<std::uint32_t> children[2];
    std::uint32_t depth = 0;
    std::uint32_t colour = 0;  // of the edge to the parent
  };
  // Over the edges of this round's colour: the neighbour, and the chunks up and down.
  struct Exchange {
    std::uint32_t neighbour = 0;  // node
    bool with_parent = false;
    std::optional<std::uint32_t> sent;
    std::optional<std::uint32_t> received;
  };
  std::optional<Exchange> exchange(std::uint32_t round, std::uint32_t node) const;
  std::uint32_t node_of(std::uint32_t lane, std::uint32_t member) const;
  std::uint32_t member_of(std::uint32_t lane, std::uint32_t node) const;
  // The chunk of a period that begins `delay` periods after the start.
  std::optional<std::uint32_t> chunk(std::uint32_t round, std::uint32_t delay) const;

  std::vector<Node> nodes_;  // of tree 0
  std::uint32_t depth_ = 0;
  std::uint32_t chunks_;
};

}  // namespace stepsim
