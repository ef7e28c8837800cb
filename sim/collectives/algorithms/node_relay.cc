#include "sim/collectives/algorithms/node_relay.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "sim/collectives/parts.h"

namespace stepsim {
namespace {

// Returns enough chunks to keep both legs busy, in messages that are not small.
std::uint32_t chunks_of(Bytes bytes, std::uint32_t members) {
  constexpr std::int64_t kSmallestMessage = 256 << 10;
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(bytes.value() / members / kSmallestMessage, 1, 16));
}

}  // namespace

NodeRelay::NodeRelay(const CollectiveTask& task, GroupShape shape, FirstLeg first)
    : task_(task),
      shape_(std::move(shape)),
      per_node_(shape_.node_size()),
      first_(first),
      position_(shape_.members()) {
  assert(shape_.dimensions.size() > 1);
  assert(task.op == CollectiveOp::kAllToAll);
  chunks_ = chunks_of(task.bytes, members());
  for (std::uint32_t position = 0; position < members(); ++position) {
    position_[shape_.order[position]] = position;
  }
}

NodeRelay::Leg NodeRelay::leg(std::uint32_t round) const {
  const bool node_first = first_ == FirstLeg::kNode;
  const std::uint32_t rounds_of_first = rounds_of(node_first);
  if (round < rounds_of_first) return {.in_node = node_first, .first = true, .step = round + 1};
  return {.in_node = !node_first, .first = false, .step = round - rounds_of_first + 1};
}

// Returns the member `step` places on or back, in the node or on the rail.
std::uint32_t NodeRelay::partner(const Leg& leg, std::uint32_t member, bool back) const {
  const std::uint32_t inside = position_[member] % per_node_;
  const std::uint32_t node = position_[member] / per_node_;
  const std::uint32_t size = leg.in_node ? per_node_ : nodes();
  const std::uint32_t step = back ? size - leg.step : leg.step;
  return leg.in_node ? member_at((inside + step) % size, node)
                     : member_at(inside, (node + step) % size);
}

// The first leg carries the data of `from` for all members that are reached through `to`: on its
// rail, or in its node. The second leg carries to `to` the data of all members that come through
// `from`.
template <typename Visit>
void NodeRelay::for_each_pair(const Leg& leg, std::uint32_t from, std::uint32_t to,
                              Visit visit) const {
  const bool node_first = first_ == FirstLeg::kNode;
  const std::uint32_t relay = position_[leg.first ? to : from];
  const std::uint32_t others = node_first == leg.first ? nodes() : per_node_;
  for (std::uint32_t i = 0; i < others; ++i) {
    // In the first leg of pxn and the second of forwarding, these are all members on the relay's
    // rail.
    const std::uint32_t other =
        node_first == leg.first ? member_at(relay % per_node_, i) : member_at(i, relay / per_node_);
    visit(leg.first ? from : other, leg.first ? other : to);
  }
}

Bytes NodeRelay::bytes_of(std::uint32_t shard, std::uint32_t lane) const {
  const std::uint32_t source = shard / members();
  const std::uint32_t destination = shard % members();
  if (task_.matrix != nullptr) {
    return Bytes(part(task_.matrix->between(source, destination).value(), lane, chunks_));
  }
  const std::int64_t element = task_.element.value();
  const std::int64_t elements = part(task_.bytes.value() / element, destination, members());
  return Bytes(element * part(elements, lane, chunks_));
}

bool NodeRelay::forwards_shared() const {
  if (task_.matrix == nullptr) return false;
  return task_.matrix->sharing ==
         (first_ == FirstLeg::kNode ? NodeSharing::kFromNode : NodeSharing::kToNode);
}

Bytes NodeRelay::bytes_between_nodes(std::uint32_t lane, std::uint32_t from,
                                     std::uint32_t to) const {
  const ByteMatrix& matrix = *task_.matrix;
  const bool to_node = matrix.sharing == NodeSharing::kToNode;
  const Bytes whole = to_node ? matrix.between_node(from, matrix.node_of[to])
                              : matrix.between_node(to, matrix.node_of[from]);
  return Bytes(part(whole.value(), lane, chunks_));
}

std::optional<CollectiveMessage> NodeRelay::message(std::uint32_t lane, std::uint32_t round,
                                                    std::uint32_t member) const {
  const Leg now = leg(round);
  CollectiveMessage result{.to = partner(now, member, false), .bytes = {}};
  if (!now.in_node && forwards_shared()) {
    result.bytes = bytes_between_nodes(lane, member, result.to);
  } else {
    for_each_pair(now, member, result.to, [&](std::uint32_t source, std::uint32_t destination) {
      result.bytes += bytes_of(source * members() + destination, lane);
    });
  }
  // There is nothing to send. Without a matrix there is always a message, as in other algorithms.
  if (task_.matrix != nullptr && result.bytes == Bytes(0)) return std::nullopt;
  return result;
}

std::uint32_t NodeRelay::receives(std::uint32_t lane, std::uint32_t round,
                                  std::uint32_t member) const {
  if (task_.matrix == nullptr) return 1;
  return message(lane, round, partner(leg(round), member, true)) ? 1 : 0;
}

// A chunk enters a leg when the chunk before it has left it.
std::optional<LaneGate> NodeRelay::gate(std::uint32_t lane, std::uint32_t round,
                                        std::uint32_t) const {
  if (lane == 0) return std::nullopt;
  const std::uint32_t rounds_of_first = rounds_of(first_ == FirstLeg::kNode);
  return LaneGate{.lane = lane - 1,
                  .round = (round < rounds_of_first ? rounds_of_first : rounds()) - 1};
}

void NodeRelay::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                       std::vector<std::uint32_t>& out) const {
  const Leg now = leg(round);
  for_each_pair(now, member, partner(now, member, false),
                [&](std::uint32_t source, std::uint32_t destination) {
                  const std::uint32_t shard = source * members() + destination;
                  const bool empty = task_.matrix != nullptr &&
                                     task_.matrix->between(source, destination) == Bytes(0);
                  if (!empty) out.push_back(lane * shards() + shard);
                });
}

}  // namespace stepsim
