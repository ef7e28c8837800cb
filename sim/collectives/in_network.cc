#include "sim/collectives/in_network.h"

#include <algorithm>
#include <cassert>

namespace stepsim {
namespace {

constexpr std::int64_t kSmallestChunk = 64 << 10;
constexpr std::int64_t kMostChunks = 64;
constexpr std::int64_t kMostLaneStates = 1 << 20;  // lanes x endpoints

}  // namespace

InNetwork::InNetwork(const CollectiveTask& task, const GroupShape& shape)
    : task_(task),
      n_(shape.members()),
      nodes_(shape.tree.nodes.size()),
      position_(shape.members()) {
  assert(!shape.tree.nodes.empty());
  for (std::uint32_t position = 0; position < n_; ++position) {
    position_[shape.order[position]] = position;
  }
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const SwitchTree::Node& given = shape.tree.nodes[node];
    nodes_[node].parent = given.parent;
    nodes_[node].up = given.up;
    nodes_[node].down = given.down;
  }
  const std::vector<std::uint32_t> reached = relate(nodes_);
  root_ = reached.front();
  for (std::size_t i = reached.size(); i-- > 0;) {
    Node& node = nodes_[reached[i]];
    if (reached[i] < n_) node.members.push_back(reached[i]);
    std::ranges::sort(node.members, {}, [&](std::uint32_t member) { return position_[member]; });
    most_children_ = std::max(most_children_, static_cast<std::uint32_t>(node.children.size()));
    if (reached[i] == root_) continue;
    Node& parent = nodes_[node.parent];
    parent.members.insert(parent.members.end(), node.members.begin(), node.members.end());
  }
  height_ = nodes_[root_].height;
  const std::int64_t states = std::int64_t{1 + most_children_} * endpoints();
  chunks_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      std::min(task.bytes.value() / kSmallestChunk, kMostLaneStates / states), 1, kMostChunks));
}

bool InNetwork::sends_up(std::uint32_t node) const {
  if (task_.op != CollectiveOp::kBroadcast) return true;
  return std::ranges::find(nodes_[node].members, task_.root) != nodes_[node].members.end();
}

bool InNetwork::gets_down(std::uint32_t node) const {
  if (task_.op == CollectiveOp::kReduce) {
    return std::ranges::find(nodes_[node].members, task_.root) != nodes_[node].members.end();
  }
  return task_.op != CollectiveOp::kBroadcast || node != task_.root;
}

std::optional<std::uint32_t> InNetwork::child(std::uint32_t lane, std::uint32_t node) const {
  const std::uint32_t place = lane % (1 + most_children_) - 1;
  if (place >= nodes_[node].children.size()) return std::nullopt;
  const std::uint32_t found = nodes_[node].children[place];
  return gets_down(found) ? std::optional(found) : std::nullopt;
}

// Up an all-gather what is owned below, a reduce-scatter what is owned elsewhere; down the other.
void InNetwork::blocks_between(std::uint32_t lane, std::uint32_t node,
                               std::vector<std::uint32_t>& out) const {
  const std::uint32_t first = chunk(lane) * (sharded() ? n_ : 1);
  if (!sharded()) {
    out.push_back(first);
    return;
  }
  const bool below = is_up(lane) == (task_.op == CollectiveOp::kAllGather);
  std::vector<bool> is_below(n_, false);
  for (const std::uint32_t member : nodes_[node].members) is_below[position_[member]] = true;
  for (std::uint32_t shard = 0; shard < n_; ++shard) {
    if (is_below[shard] == below) out.push_back(first + shard);
  }
}

Bytes InNetwork::bytes_of(std::uint32_t block) const {
  const auto part = [](std::int64_t whole, std::int64_t i, std::int64_t parts) {
    return (i + 1) * whole / parts - i * whole / parts;
  };
  const std::int64_t elements = task_.bytes.value() / task_.element.value();
  const std::int64_t shard = part(elements, block % shards(), shards());
  return Bytes(part(shard, block / shards(), pieces()) * task_.element.value());
}

// A node of height h sends up in round h, when all below it have; one of depth d sends down in
// round d, after its parent.
std::optional<CollectiveMessage> InNetwork::message(std::uint32_t lane, std::uint32_t round,
                                                    std::uint32_t member) const {
  const Node& node = nodes_[member];
  std::uint32_t lower = member;
  CollectiveMessage result;
  if (is_up(lane)) {
    if (member == root_ || node.height != round || !sends_up(member)) return std::nullopt;
    result.to = node.parent;
    result.link = node.up;
  } else {
    if (node.depth != round) return std::nullopt;
    const auto served = child(lane, member);
    if (!served) return std::nullopt;
    lower = *served;
    result.to = lower;
    result.link = nodes_[lower].down;
  }
  result.reduce =
      task_.op == CollectiveOp::kReduceScatter ||
      (is_up(lane) && (task_.op == CollectiveOp::kAllReduce || task_.op == CollectiveOp::kReduce));
  std::vector<std::uint32_t> carried;
  blocks_between(lane, lower, carried);
  for (const std::uint32_t block : carried) result.bytes += bytes_of(block);
  return result;
}

std::uint32_t InNetwork::receives(std::uint32_t lane, std::uint32_t round,
                                  std::uint32_t member) const {
  const Node& node = nodes_[member];
  if (is_up(lane)) {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        node.children,
        [&](std::uint32_t child) { return nodes_[child].height == round && sends_up(child); }));
  }
  const bool served = member != root_ && node.place + 1 == lane % (1 + most_children_);
  return served && node.depth == round + 1 && gets_down(member) ? 1 : 0;
}

// The root goes on when everything has come up; the others when it has come down to them.
std::optional<LaneGate> InNetwork::gate(std::uint32_t lane, std::uint32_t,
                                        std::uint32_t member) const {
  if (is_up(lane)) return std::nullopt;
  const std::uint32_t up = lane - lane % (1 + most_children_);
  const Node& node = nodes_[member];
  if (member == root_) return LaneGate{.lane = up, .round = height_ - 1};
  return LaneGate{.lane = up + 1 + node.place, .round = node.depth - 1};
}

void InNetwork::blocks(std::uint32_t lane, std::uint32_t, std::uint32_t member,
                       std::vector<std::uint32_t>& out) const {
  blocks_between(lane, is_up(lane) ? member : *child(lane, member), out);
}

}  // namespace stepsim
