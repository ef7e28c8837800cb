// InNetwork is a collective whose sums and copies are made by the switches between the members:
// NVLS (one NVSwitch) and SHARP (a tree of InfiniBand switches; Graham and others 2016). Every
// member has its data go up the tree once and gets its result down once:
//
//            root                up     a switch adds what comes from below, and passes it on
//           /    \               down   a switch copies what comes from above to all below
//      switch    switch
//       / \       / \            all-reduce   S up, S down: S/W, not 2 (n-1)/n S/W (FORMULAS C12)
//      0   1     2   3           reduce-scatter, all-gather   what others own: (n-1)/n S/W
//                                reduce, broadcast            S/W
//
// and two trips to the root in place of 2 (n-1). Switches cut through: in flow models the whole
// collective is one transfer over the tree, which starts when the last member is there, stepped or
// not. As packets it is stored and forwarded in chunks, each a set of lanes of its own: one up, and
// one down for each place among the children of a switch.
//
// How fast a switch adds: Cluster::adders. Not modelled: its reduction buffers.

#pragma once

#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/tree_nodes.h"

namespace stepsim {

class InNetwork final : public CollectiveAlgorithm {
 public:
  // REQUIRES: shape.tree is there; all-reduce, reduce-scatter, all-gather, reduce or broadcast.
  InNetwork(const CollectiveTask& task, const GroupShape& shape);

  std::uint32_t members() const override { return n_; }
  std::uint32_t endpoints() const override { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t lanes() const override { return chunks_ * (1 + most_children_); }
  std::uint32_t rounds() const override { return height_; }
  std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                           std::uint32_t member) const override;
  std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                         std::uint32_t member) const override;
  bool gated() const override { return true; }
  std::optional<LaneGate> gate(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const override;
  bool cuts_through() const override { return true; }
  std::uint32_t shards() const override { return sharded() ? n_ : chunks_; }
  std::uint32_t pieces() const override { return sharded() ? chunks_ : 1; }
  std::uint32_t shard_of(std::uint32_t member) const override { return position_[member]; }
  void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
              std::vector<std::uint32_t>& out) const override;

 private:
  struct Node : TreeNode {
    std::vector<std::uint32_t> members;  // below it, or itself; in order of shards
  };
  bool sharded() const {
    return task_.op == CollectiveOp::kAllGather || task_.op == CollectiveOp::kReduceScatter;
  }
  // Whether what is below `node` has anything to send up, or anything to get.
  bool sends_up(std::uint32_t node) const;
  bool gets_down(std::uint32_t node) const;
  std::uint32_t chunk(std::uint32_t lane) const { return lane / (1 + most_children_); }
  bool is_up(std::uint32_t lane) const { return lane % (1 + most_children_) == 0; }
  // The child that `node` serves in this lane going down; nothing if there is none.
  std::optional<std::uint32_t> child(std::uint32_t lane, std::uint32_t node) const;
  // Blocks over the link between `node` and its parent.
  void blocks_between(std::uint32_t lane, std::uint32_t node,
                      std::vector<std::uint32_t>& out) const;
  Bytes bytes_of(std::uint32_t block) const;

  CollectiveTask task_;
  std::uint32_t n_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> position_;  // by member
  std::uint32_t root_ = 0;
  std::uint32_t height_ = 0;
  std::uint32_t most_children_ = 0;
  std::uint32_t chunks_ = 1;
};

}  // namespace stepsim
