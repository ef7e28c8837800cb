#include "sim/collectives/algorithms/trees/double_binary_tree.h"

#include <algorithm>

#include "sim/collectives/algorithms/trees/reduction_trees.h"

namespace stepsim {

DoubleBinaryTree::DoubleBinaryTree(const CollectiveTask& task,
                                   const std::vector<std::uint32_t>& order)
    : FlatAlgorithm(task, order),
      nodes_(order.size()),
      chunks_(task.in_one_piece ? 1 : pipeline_chunks(task.bytes / 2)) {
  const std::uint32_t n = members();
  for (std::uint32_t node = 1; node < n; ++node) {
    const std::uint32_t parent = parent_in_order(node, n);
    nodes_[node].parent = parent;
    nodes_[node].place = static_cast<std::uint32_t>(nodes_[parent].children.size());
    nodes_[parent].children.push_back(node);
  }
  for (std::uint32_t node = 1; node < n; ++node) {
    for (std::uint32_t at = node; at != 0; at = nodes_[at].parent) ++nodes_[node].depth;
    depth_ = std::max(depth_, nodes_[node].depth);
  }
}

std::uint32_t DoubleBinaryTree::node_of(std::uint32_t lane, std::uint32_t member) const {
  const std::uint32_t n = members();
  const std::uint32_t position = position_of(member);
  if (lane < kLanesOfTree) return position;
  return node_of_second_tree(position, n);
}

std::uint32_t DoubleBinaryTree::member_of(std::uint32_t lane, std::uint32_t node) const {
  const std::uint32_t n = members();
  if (lane < kLanesOfTree) return member_at(node);
  return member_at(n % 2 == 0 ? n - 1 - node : (node + 1) % n);
}

// A node of depth d sends chunk c up in round c + D - d, one round after its children send it. It
// sends the chunk down in round c + d, after its parent.
std::optional<std::uint32_t> DoubleBinaryTree::chunk(std::uint32_t lane, std::uint32_t round,
                                                     std::uint32_t node) const {
  const Node& self = nodes_[node];
  const bool sends = is_up(lane) ? node != 0 : self.children.size() >= lane % kLanesOfTree;
  const std::uint32_t delay = is_up(lane) ? depth_ - self.depth : self.depth;
  if (!sends || round < delay || round - delay >= chunks_) return std::nullopt;
  return round - delay;
}

std::optional<CollectiveMessage> DoubleBinaryTree::message(std::uint32_t lane, std::uint32_t round,
                                                           std::uint32_t member) const {
  const std::uint32_t node = node_of(lane, member);
  const auto sent = chunk(lane, round, node);
  if (!sent) return std::nullopt;
  const std::uint32_t to =
      is_up(lane) ? nodes_[node].parent : nodes_[node].children[lane % kLanesOfTree - 1];
  return CollectiveMessage{
      .to = member_of(lane, to),
      .bytes = bytes_of_parts(lane / kLanesOfTree * chunks_ + *sent, 1, shards()),
      .reduce = is_up(lane)};
}

std::uint32_t DoubleBinaryTree::receives(std::uint32_t lane, std::uint32_t round,
                                         std::uint32_t member) const {
  const std::uint32_t node = node_of(lane, member);
  if (!is_up(lane)) {
    const bool served = node != 0 && nodes_[node].place + 1 == lane % kLanesOfTree;
    return served && chunk(lane, round, nodes_[node].parent) ? 1 : 0;
  }
  std::uint32_t count = 0;
  for (const std::uint32_t child : nodes_[node].children) {
    if (chunk(lane, round, child)) ++count;
  }
  return count;
}

// A chunk that goes down has come up to the root, or has come down to the node. The node's parent
// serves it in the lane of the node's place.
std::optional<LaneGate> DoubleBinaryTree::gate(std::uint32_t lane, std::uint32_t round,
                                               std::uint32_t member) const {
  if (is_up(lane)) return std::nullopt;
  const std::uint32_t tree = lane - lane % kLanesOfTree;
  const std::uint32_t node = node_of(lane, member);
  if (node == 0) return LaneGate{.lane = tree, .round = round + depth_ - 1};
  if (round == 0) return std::nullopt;
  return LaneGate{.lane = tree + 1 + nodes_[node].place, .round = round - 1};
}

void DoubleBinaryTree::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                              std::vector<std::uint32_t>& out) const {
  out.push_back(lane / kLanesOfTree * chunks_ + *chunk(lane, round, node_of(lane, member)));
}

}  // namespace stepsim
