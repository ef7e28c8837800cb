#include "sim/collectives/double_binary_tree.h"

#include <algorithm>
#include <bit>

namespace stepsim {

// The height of node v > 0 is the place of its lowest one bit; node 0 stands above the root of the
// others, whose height is the largest.
DoubleBinaryTree::DoubleBinaryTree(const CollectiveTask& task,
                                   const std::vector<std::uint32_t>& order)
    : FlatAlgorithm(task, order),
      nodes_(order.size()),
      chunks_(pipeline_chunks(task.bytes / 2, members())) {
  const std::uint32_t n = members();
  for (std::uint32_t node = 1; node < n; ++node) {
    const std::uint32_t bit = node & (~node + 1);
    std::uint32_t parent = (node ^ bit) | (bit << 1);
    if (parent >= n) parent = node ^ bit;
    nodes_[node].parent = parent;
    nodes_[parent].children[nodes_[parent].children[0] ? 1 : 0] = node;
  }
  for (std::uint32_t node = 1; node < n; ++node) {
    for (std::uint32_t at = node; at != 0; at = *nodes_[at].parent) ++nodes_[node].depth;
    depth_ = std::max(depth_, nodes_[node].depth);
  }
  // From the root down: a child's edge has another colour than its parent's and its sibling's.
  std::vector<std::uint32_t> reached = {0};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    std::uint32_t colour = nodes_[reached[i]].colour;
    for (const std::optional<std::uint32_t>& child : nodes_[reached[i]].children) {
      if (!child) continue;
      colour = (colour + 1) % 3;
      nodes_[*child].colour = colour;
      reached.push_back(*child);
    }
  }
}

std::uint32_t DoubleBinaryTree::node_of(std::uint32_t lane, std::uint32_t member) const {
  const std::uint32_t n = members();
  const std::uint32_t position = position_of(member);
  if (lane == 0) return position;
  return n % 2 == 0 ? n - 1 - position : (position + n - 1) % n;
}

std::uint32_t DoubleBinaryTree::member_of(std::uint32_t lane, std::uint32_t node) const {
  const std::uint32_t n = members();
  if (lane == 0) return member_at(node);
  return member_at(n % 2 == 0 ? n - 1 - node : (node + 1) % n);
}

std::optional<std::uint32_t> DoubleBinaryTree::chunk(std::uint32_t round,
                                                     std::uint32_t delay) const {
  const std::uint32_t period = round / 3;
  if (period < delay || period - delay >= chunks_) return std::nullopt;
  return period - delay;
}

// In each period a node of depth d sends chunk (period - D + d) to its parent and chunk
// (period - D - d) to its children.
std::optional<DoubleBinaryTree::Exchange> DoubleBinaryTree::exchange(std::uint32_t round,
                                                                     std::uint32_t node) const {
  const Node& self = nodes_[node];
  const std::uint32_t colour = round % 3;
  if (self.parent && self.colour == colour) {
    return Exchange{.neighbour = *self.parent,
                    .with_parent = true,
                    .sent = chunk(round, depth_ - self.depth),
                    .received = chunk(round, depth_ + self.depth - 1)};
  }
  for (const std::optional<std::uint32_t>& child : self.children) {
    if (!child || nodes_[*child].colour != colour) continue;
    return Exchange{.neighbour = *child,
                    .with_parent = false,
                    .sent = chunk(round, depth_ + self.depth),
                    .received = chunk(round, depth_ - self.depth - 1)};
  }
  return std::nullopt;
}

std::optional<CollectiveMessage> DoubleBinaryTree::message(std::uint32_t lane, std::uint32_t round,
                                                           std::uint32_t member) const {
  const auto what = exchange(round, node_of(lane, member));
  if (!what || !what->sent) return std::nullopt;
  return CollectiveMessage{.to = member_of(lane, what->neighbour),
                           .bytes = bytes_of_parts(lane * chunks_ + *what->sent, 1, shards()),
                           .reduce = what->with_parent};
}

std::uint32_t DoubleBinaryTree::receives(std::uint32_t lane, std::uint32_t round,
                                         std::uint32_t member) const {
  const auto what = exchange(round, node_of(lane, member));
  return what && what->received ? 1 : 0;
}

void DoubleBinaryTree::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                              std::vector<std::uint32_t>& out) const {
  out.push_back(lane * chunks_ + *exchange(round, node_of(lane, member))->sent);
}

}  // namespace stepsim
