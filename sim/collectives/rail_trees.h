// RailTrees is an all-reduce over nodes whose network adds and copies (SHARP), but whose cards are
// one a member: reduce-scatter in the node, so that each member holds the node's sum of its share;
// the share over the tree of switches of its rail, up and down; all-gather in the node (NCCL's
// CollNet). Rails work at once, each on its d-th of the data.
//
// On an idle network with S bytes, d members a node, W_node in it and cards of W: the larger of
// 2 (d-1)/d S/W_node and S/(d W), with all phases at work (FORMULAS C12, C18); stepped or not one
// transfer, since switches cut through. As packets the phases follow each other.

#pragma once

#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/tree_nodes.h"

namespace stepsim {

class RailTrees final : public CollectiveAlgorithm {
 public:
  // The first dimension is the node. REQUIRES: shape.rail_trees has a tree for each of its
  // members; the operation is all-reduce.
  RailTrees(const CollectiveTask& task, const GroupShape& shape);

  std::uint32_t members() const override { return n_; }
  std::uint32_t endpoints() const override { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t lanes() const override { return kDown + most_children_ + 1; }
  std::uint32_t rounds() const override { return rounds_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  bool gated() const override { return true; }
  std::optional<LaneGate> gate(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const override;
  bool cuts_through() const override { return true; }
  std::uint32_t shards() const override { return per_node_; }
  std::uint32_t shard_of(std::uint32_t member) const override { return nodes_[member].share; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  // Lanes: the scatter in the node, up the trees, down to each child, the gather in the node.
  static constexpr std::uint32_t kScatter = 0;
  static constexpr std::uint32_t kUp = 1;
  static constexpr std::uint32_t kDown = 2;
  bool in_node(std::uint32_t lane) const { return lane == kScatter || lane + 1 == lanes(); }

  struct Node : TreeNode {    // of the tree of a rail
    std::uint32_t share = 0;  // of the data: its rail
  };
  bool is_root(std::uint32_t node) const { return nodes_[node].parent == node; }
  std::uint32_t block(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const;
  std::uint32_t neighbour(std::uint32_t member) const;  // the next one in the node

  CollectiveTask task_;
  std::uint32_t n_;
  std::uint32_t per_node_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> position_;
  std::vector<Node> nodes_;  // members, then the switches of each rail
  std::uint32_t most_children_ = 0;
  std::uint32_t rounds_ = 0;
};

}  // namespace stepsim
