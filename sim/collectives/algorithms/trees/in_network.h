// InNetwork is a collective over trees of members and switches (reduction_trees.h), on which sums
// and copies are made on the way: NVLS (one NVSwitch), SHARP (switches of InfiniBand; Graham and
// others 2016), both together, and NVLS with trees of members between nodes (NCCL's NVLSTree). The
// data are cut into a share for each tree.
//
//            root                up     a node adds what comes from below, and passes it on
//           /    \               down   a node copies what comes from above to all below
//      switch    switch
//       / \       / \            all-reduce   S up, S down: S/W, not 2 (n-1)/n S/W (FORMULAS C12)
//      0   1     2   3           reduce-scatter, all-gather   what others own: (n-1)/n S/W
//                                reduce                       S/W up, and down to the root
//                                broadcast                    every edge once: S/W
//                                barrier                      a word up and down
//
// and two trips to the root in place of 2 (n-1). Over nodes with d members, W_node in the node and
// cards of W, a tree a rail: every link carries the whole, every card its d-th once each way:
// max(S/W_node, S/(d W)); without a switch in the node, 2 (d-1)/d S/W_node.
//
// Switches cut through: in flow models the whole collective is one transfer over the trees, which
// starts when the last member is there, stepped or not. As packets, and where members are inner
// nodes of binary trees, it is stored and forwarded in chunks, each a set of lanes of its own: one
// up, and one down for each place among the children of a node.
//
// How fast a switch adds: Cluster::adders. Not modelled: its reduction buffers.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/algorithms/trees/reduction_trees.h"

namespace stepsim {

class InNetwork final : public CollectiveAlgorithm {
 public:
  // If there are several trees, those of place i in a node (the first dimension) are consecutive,
  // with equally many for each place. REQUIRES: the trees reach all members; the operation is none
  // of send-receive, permute, all-to-all, gather and scatter.
  InNetwork(const CollectiveTask& task, const GroupShape& shape, std::vector<ReductionTree> trees,
            bool cuts_through);

  std::uint32_t members() const override { return n_; }
  std::uint32_t endpoints() const override {
    return static_cast<std::uint32_t>(trees_.front().nodes.size());
  }
  std::uint32_t lanes() const override { return count() * chunks_ * width(); }
  std::uint32_t rounds() const override { return height_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::pair<std::uint32_t, std::uint32_t> sending_rounds(std::uint32_t lane,
                                                         std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  // The chunks of a tree follow each other.
  std::uint32_t queue(std::uint32_t lane) const override {
    return tree_of(lane) * width() + lane % width();
  }
  bool gated() const override { return true; }
  std::optional<LaneGate> gate(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const override;
  // Returns the lanes of the same chunk.
  std::pair<std::uint32_t, std::uint32_t> lanes_behind(std::uint32_t lane) const override {
    const std::uint32_t first = lane - lane % width();
    return {first, first + width()};
  }
  bool cuts_through() const override { return cuts_through_; }
  std::uint32_t shards() const override { return sharded() ? n_ : count() * chunks_; }
  std::uint32_t pieces() const override { return sharded() ? trees_of_rail_ * chunks_ : 1; }
  std::uint32_t shard_of(std::uint32_t member) const override { return position_[member]; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  std::uint32_t count() const { return static_cast<std::uint32_t>(trees_.size()); }
  std::uint32_t width() const { return 1 + most_children_; }  // lanes of a chunk
  std::uint32_t tree_of(std::uint32_t lane) const { return lane / width() / chunks_; }
  bool is_up(std::uint32_t lane) const { return lane % width() == 0; }
  bool sharded() const {
    return task_.op == CollectiveOp::kAllGather || task_.op == CollectiveOp::kReduceScatter;
  }
  const ReductionTree::Node& node_of(std::uint32_t tree, std::uint32_t node) const {
    return trees_[tree].nodes[node];
  }
  void find_owned(std::uint32_t tree, const std::vector<std::uint32_t>& position);
  bool holds_root(std::uint32_t tree, std::uint32_t node) const { return below_root_[tree][node]; }
  // Return whether the nodes below `node` have anything to send up, or anything to receive.
  bool sends_up(std::uint32_t tree, std::uint32_t node) const;
  bool gets_down(std::uint32_t tree, std::uint32_t node) const;
  // Returns the child that `node` serves in this lane going down; nullopt if there is none.
  std::optional<std::uint32_t> child(std::uint32_t lane, std::uint32_t node) const;
  // Returns the block that every edge of a lane carries. REQUIRES: !sharded()
  std::uint32_t block_of(std::uint32_t lane) const { return lane / width(); }
  // Returns the blocks over the edge between `node` and its parent.
  void blocks_between(std::uint32_t lane, std::uint32_t node,
                      std::vector<std::uint32_t>& out) const;
  Bytes bytes_of(std::uint32_t block) const;

  CollectiveTask task_;
  std::uint32_t n_;
  std::vector<ReductionTree> trees_;
  bool cuts_through_;
  std::uint32_t trees_of_rail_ = 1;
  std::vector<std::uint32_t> position_;  // by member
  // Both are indexed by tree and node. owned_ lists the tree's shards that the node or nodes below
  // it own, in order. The other says whether the task's root is the node or below it.
  std::vector<std::vector<std::vector<std::uint32_t>>> owned_;
  std::vector<std::vector<bool>> below_root_;
  std::vector<std::uint32_t> shards_of_tree_;
  std::uint32_t height_ = 0;
  std::uint32_t most_children_ = 0;
  std::uint32_t chunks_ = 1;
};

}  // namespace stepsim
