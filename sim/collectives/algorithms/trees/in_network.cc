#include "sim/collectives/algorithms/trees/in_network.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "sim/collectives/parts.h"

namespace stepsim {
namespace {

constexpr std::int64_t kSmallestChunk = 64 << 10;
constexpr std::int64_t kMostChunks = 64;
constexpr std::int64_t kMostLaneStates = 1 << 20;  // lanes x endpoints

}  // namespace

InNetwork::InNetwork(const CollectiveTask& task, const GroupShape& shape,
                     std::vector<ReductionTree> trees, bool cuts_through)
    : task_(task),
      n_(shape.members()),
      trees_(std::move(trees)),
      cuts_through_(cuts_through),
      position_(shape.members()) {
  assert(!trees_.empty());
  // A single word goes over one tree.
  if (task.op == CollectiveOp::kBarrier) trees_.resize(1);
  for (std::uint32_t position = 0; position < n_; ++position) {
    position_[shape.order[position]] = position;
  }
  const std::uint32_t rails = trees_.size() == 1 ? 1 : shape.node_size();
  trees_of_rail_ = count() / rails;
  for (std::uint32_t tree = 0; tree < count(); ++tree) {
    shards_of_tree_.push_back(0);
    find_owned(tree, shape.order);
    height_ = std::max(height_, node_of(tree, trees_[tree].root).height);
    for (const ReductionTree::Node& node : trees_[tree].nodes) {
      most_children_ = std::max(most_children_, static_cast<std::uint32_t>(node.children.size()));
    }
  }
  const std::int64_t states = std::int64_t{width()} * endpoints() * count();
  chunks_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      std::min(task.bytes.value() / count() / kSmallestChunk, kMostLaneStates / states), 1,
      task.in_one_piece ? 1 : kMostChunks));
}

// Works from the lowest nodes up. The shards of a tree are those of the members on its rail.
void InNetwork::find_owned(std::uint32_t tree, const std::vector<std::uint32_t>& order) {
  const std::vector<ReductionTree::Node>& nodes = trees_[tree].nodes;
  owned_.emplace_back(nodes.size());
  below_root_.emplace_back(nodes.size(), false);
  const std::uint32_t rails = count() / trees_of_rail_;
  const std::uint32_t rail = tree / trees_of_rail_;
  std::vector<std::uint32_t> lowest_first;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].there) lowest_first.push_back(i);
  }
  std::ranges::stable_sort(lowest_first, {}, [&](std::uint32_t i) { return nodes[i].height; });
  for (const std::uint32_t i : lowest_first) {
    std::vector<std::uint32_t>& owned = owned_.back()[i];
    if (i < n_ && position_[i] % rails == rail) owned.push_back(position_[i]);
    if (i < n_ && i == task_.root) below_root_.back()[i] = true;
    std::ranges::sort(owned);
    if (nodes[i].parent == i) continue;
    std::vector<std::uint32_t>& above = owned_.back()[nodes[i].parent];
    above.insert(above.end(), owned.begin(), owned.end());
    if (below_root_.back()[i]) below_root_.back()[nodes[i].parent] = true;
  }
  shards_of_tree_[tree] = static_cast<std::uint32_t>(order.size()) / rails;
}

bool InNetwork::sends_up(std::uint32_t tree, std::uint32_t node) const {
  if (!node_of(tree, node).there || node == trees_[tree].root) return false;
  switch (task_.op) {
    case CollectiveOp::kBroadcast:
      return holds_root(tree, node);
    case CollectiveOp::kAllGather:
      return !owned_[tree][node].empty();
    case CollectiveOp::kReduceScatter:
      return owned_[tree][node].size() < shards_of_tree_[tree];
    default:
      return true;
  }
}

bool InNetwork::gets_down(std::uint32_t tree, std::uint32_t node) const {
  if (!node_of(tree, node).there || node == trees_[tree].root) return false;
  switch (task_.op) {
    case CollectiveOp::kBroadcast:
      return !holds_root(tree, node);
    case CollectiveOp::kReduce:
      return holds_root(tree, node);
    case CollectiveOp::kAllGather:
      return owned_[tree][node].size() < shards_of_tree_[tree];
    case CollectiveOp::kReduceScatter:
      return !owned_[tree][node].empty();
    default:
      return true;
  }
}

std::optional<std::uint32_t> InNetwork::child(std::uint32_t lane, std::uint32_t node) const {
  const std::uint32_t tree = tree_of(lane);
  const std::uint32_t place = lane % width() - 1;
  const std::vector<std::uint32_t>& children = node_of(tree, node).children;
  if (place >= children.size() || !gets_down(tree, children[place])) return std::nullopt;
  return children[place];
}

// An all-gather carries the shards that are owned below up, and all others down. A reduce-scatter
// carries the shards that are owned elsewhere up, and those owned below down.
void InNetwork::blocks_between(std::uint32_t lane, std::uint32_t node,
                               std::vector<std::uint32_t>& out) const {
  const std::uint32_t tree = tree_of(lane);
  if (!sharded()) {
    out.push_back(block_of(lane));
    return;
  }
  const std::uint32_t chunk = lane / width() % chunks_;
  const std::uint32_t piece = tree % trees_of_rail_ * chunks_ + chunk;
  const bool below = is_up(lane) == (task_.op == CollectiveOp::kAllGather);
  const std::vector<std::uint32_t>& owned = owned_[tree][node];
  if (below) {
    for (const std::uint32_t shard : owned) out.push_back(piece * n_ + shard);
    return;
  }
  const std::uint32_t rails = count() / trees_of_rail_;
  auto next = owned.begin();
  for (std::uint32_t shard = tree / trees_of_rail_; shard < n_; shard += rails) {
    if (next != owned.end() && *next == shard) {
      ++next;
    } else {
      out.push_back(piece * n_ + shard);
    }
  }
}

Bytes InNetwork::bytes_of(std::uint32_t block) const {
  const std::int64_t elements = task_.bytes.value() / task_.element.value();
  const std::int64_t shard = part(elements, block % shards(), shards());
  return Bytes(part(shard, block / shards(), pieces()) * task_.element.value());
}

// A node of height h sends up in round h, when all nodes below it have. A node of depth d sends
// down in round d, after its parent.
std::pair<std::uint32_t, std::uint32_t> InNetwork::sending_rounds(std::uint32_t lane,
                                                                  std::uint32_t member) const {
  const std::uint32_t tree = tree_of(lane);
  const ReductionTree::Node& node = node_of(tree, member);
  const bool sends = is_up(lane) ? sends_up(tree, member) : node.there && child(lane, member);
  if (!sends) return {0, 0};
  const std::uint32_t round = is_up(lane) ? node.height : node.depth;
  return {round, round + 1};
}

std::optional<CollectiveMessage> InNetwork::message(std::uint32_t lane, std::uint32_t round,
                                                    std::uint32_t member) const {
  const auto [first, last] = sending_rounds(lane, member);
  if (round < first || round >= last) return std::nullopt;
  const std::uint32_t tree = tree_of(lane);
  const ReductionTree::Node& node = node_of(tree, member);
  std::uint32_t lower = member;
  CollectiveMessage result;
  if (is_up(lane)) {
    result.to = node.parent;
    result.link = node.up;
    result.in_node = node.in_node;
  } else {
    lower = *child(lane, member);
    result.to = lower;
    result.link = node_of(tree, lower).down;
    result.in_node = node_of(tree, lower).in_node;
  }
  const bool adds_up = task_.op == CollectiveOp::kAllReduce || task_.op == CollectiveOp::kReduce ||
                       task_.op == CollectiveOp::kBarrier;
  result.reduce = task_.op == CollectiveOp::kReduceScatter || (is_up(lane) && adds_up);
  if (!sharded()) {
    result.bytes = bytes_of(block_of(lane));
    return result;
  }
  std::vector<std::uint32_t> carried;
  blocks_between(lane, lower, carried);
  for (const std::uint32_t block : carried) result.bytes += bytes_of(block);
  return result;
}

std::uint32_t InNetwork::receives(std::uint32_t lane, std::uint32_t round,
                                  std::uint32_t member) const {
  const std::uint32_t tree = tree_of(lane);
  const ReductionTree::Node& node = node_of(tree, member);
  if (!node.there) return 0;
  if (is_up(lane)) {
    return static_cast<std::uint32_t>(std::ranges::count_if(node.children, [&](std::uint32_t i) {
      return node_of(tree, i).height == round && sends_up(tree, i);
    }));
  }
  const bool served = member != trees_[tree].root && node.place + 1 == lane % width();
  return served && node.depth == round + 1 && gets_down(tree, member) ? 1 : 0;
}

// A node sends down what its parent has sent down to it. The root sends down what has come up, and
// so do the nodes on a broadcast's way up to it.
std::optional<LaneGate> InNetwork::gate(std::uint32_t lane, std::uint32_t,
                                        std::uint32_t member) const {
  const std::uint32_t up = lane - lane % width();
  const std::uint32_t tree = tree_of(lane);
  const ReductionTree::Node& node = node_of(tree, member);
  if (is_up(lane)) return std::nullopt;
  if (gets_down(tree, member)) {
    return LaneGate{.lane = up + 1 + node.place, .round = node.depth - 1};
  }
  if (node.height == 0) return std::nullopt;
  return LaneGate{.lane = up, .round = node.height - 1};
}

void InNetwork::blocks(std::uint32_t lane, std::uint32_t, std::uint32_t member,
                       std::vector<std::uint32_t>& out) const {
  blocks_between(lane, is_up(lane) ? member : *child(lane, member), out);
}

}  // namespace stepsim
