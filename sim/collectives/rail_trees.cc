#include "sim/collectives/rail_trees.h"

#include <algorithm>
#include <cassert>

namespace stepsim {

RailTrees::RailTrees(const CollectiveTask& task, const GroupShape& shape)
    : task_(task),
      n_(shape.members()),
      per_node_(shape.dimensions.front().size),
      order_(shape.order),
      position_(shape.members()),
      nodes_(shape.members()) {
  assert(task.op == CollectiveOp::kAllReduce);
  assert(shape.rail_trees.size() == per_node_);
  for (std::uint32_t position = 0; position < n_; ++position)
    position_[order_[position]] = position;
  const std::uint32_t leaves = n_ / per_node_;
  for (std::uint32_t rail = 0; rail < per_node_; ++rail) {
    const std::vector<SwitchTree::Node>& tree = shape.rail_trees[rail].nodes;
    const auto first_switch = static_cast<std::uint32_t>(nodes_.size());
    // Leaf i of the rail is its member in node i; switches come behind all members.
    const auto number = [&](std::uint32_t of_tree) {
      return of_tree < leaves ? order_[of_tree * per_node_ + rail]
                              : first_switch + of_tree - leaves;
    };
    nodes_.resize(nodes_.size() + tree.size() - leaves);
    for (std::uint32_t i = 0; i < tree.size(); ++i) {
      Node& node = nodes_[number(i)];
      node.share = rail;
      node.parent = number(tree[i].parent);
      node.up = tree[i].up;
      node.down = tree[i].down;
    }
  }
  relate(nodes_);
  rounds_ = per_node_ - 1;
  for (const Node& node : nodes_) {
    most_children_ = std::max(most_children_, static_cast<std::uint32_t>(node.children.size()));
    rounds_ = std::max(rounds_, node.height);
  }
}

std::uint32_t RailTrees::neighbour(std::uint32_t member) const {
  const std::uint32_t inside = position_[member] % per_node_;
  return order_[position_[member] - inside + (inside + 1) % per_node_];
}

// Rings in the node as in axis_rings.h; over the tree the rail's own share.
std::uint32_t RailTrees::block(std::uint32_t lane, std::uint32_t round,
                               std::uint32_t member) const {
  if (!in_node(lane)) return nodes_[member].share;
  const std::uint32_t back = lane == kScatter ? round + 1 : round;
  return (nodes_[member].share + per_node_ - back) % per_node_;
}

std::optional<CollectiveMessage> RailTrees::message(std::uint32_t lane, std::uint32_t round,
                                                    std::uint32_t member) const {
  const Node& node = nodes_[member];
  CollectiveMessage result;
  if (in_node(lane)) {
    if (member >= n_ || round + 1 >= per_node_) return std::nullopt;
    result.to = neighbour(member);
    result.reduce = lane == kScatter;
  } else if (lane == kUp) {
    if (is_root(member) || node.height != round) return std::nullopt;
    result.to = node.parent;
    result.link = node.up;
    result.reduce = true;
  } else {
    const std::uint32_t place = lane - kDown;
    if (node.depth != round || place >= node.children.size()) return std::nullopt;
    result.to = node.children[place];
    result.link = nodes_[result.to].down;
  }
  const std::int64_t elements = task_.bytes.value() / task_.element.value();
  const std::int64_t shard = block(lane, round, member);
  result.bytes = Bytes(((shard + 1) * elements / per_node_ - shard * elements / per_node_) *
                       task_.element.value());
  return result;
}

std::uint32_t RailTrees::receives(std::uint32_t lane, std::uint32_t round,
                                  std::uint32_t member) const {
  const Node& node = nodes_[member];
  if (in_node(lane)) return member < n_ && round + 1 < per_node_ ? 1 : 0;
  if (lane == kUp) {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        node.children, [&](std::uint32_t child) { return nodes_[child].height == round; }));
  }
  const bool served = !is_root(member) && node.place == lane - kDown;
  return served && node.depth == round + 1 ? 1 : 0;
}

// Members go up when their share is the node's sum, and gather when it has come down; the root goes
// down when everything has come up, other switches when it has come down to them.
std::optional<LaneGate> RailTrees::gate(std::uint32_t lane, std::uint32_t,
                                        std::uint32_t member) const {
  const Node& node = nodes_[member];
  if (lane == kScatter) return std::nullopt;
  if (lane == kUp) {
    if (member >= n_) return std::nullopt;
    return LaneGate{.lane = kScatter, .round = per_node_ - 2};
  }
  if (is_root(member)) return LaneGate{.lane = kUp, .round = node.height - 1};
  return LaneGate{.lane = kDown + node.place, .round = node.depth - 1};
}

void RailTrees::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                       std::vector<std::uint32_t>& out) const {
  out.push_back(block(lane, round, member));
}

}  // namespace stepsim
