#include "sim/collectives/algorithms/rotated_rings.h"

#include <algorithm>
#include <utility>

#include "sim/collectives/algorithms/node_rows.h"
#include "sim/collectives/parts.h"

namespace stepsim {
namespace {

// Returns the member of a node at which ring `ring` of `rings` enters node number `node`. The ring
// leaves the node at the member where it enters the next node, which must be another one. So rails
// alternate, and with an odd number of nodes a third rail is used once.
std::uint32_t entry(std::uint32_t ring, std::uint32_t node, std::uint32_t nodes,
                    std::uint32_t rings) {
  const bool last_of_odd = nodes % 2 == 1 && node + 1 == nodes;
  return (ring + (last_of_odd ? 2 : node % 2)) % rings;
}

// Appends the members of a node in the order in which a ring passes through them.
void pass_through(const std::vector<std::uint32_t>& node, std::uint32_t enters,
                  std::uint32_t leaves, std::vector<std::uint32_t>& ring) {
  const auto size = static_cast<std::uint32_t>(node.size());
  if (leaves == enters) leaves = (enters + 1) % size;  // few rails, an odd number of nodes
  ring.push_back(node[enters]);
  for (std::uint32_t step = 1; step < size; ++step) {
    const std::uint32_t inside = (enters + step) % size;
    if (inside != leaves) ring.push_back(node[inside]);
  }
  if (leaves != enters) ring.push_back(node[leaves]);
}

}  // namespace

std::vector<std::vector<std::uint32_t>> rings_over_nodes(const GroupShape& shape) {
  const std::vector<std::vector<std::uint32_t>> nodes = node_rows(shape);
  const auto count = static_cast<std::uint32_t>(nodes.size());
  std::size_t cards = nodes.front().size();
  for (const auto& node : nodes) cards = std::min(cards, node.size());
  std::vector<std::vector<std::uint32_t>> rings(cards);
  for (std::uint32_t ring = 0; ring < rings.size(); ++ring) {
    const auto rails = static_cast<std::uint32_t>(cards);
    for (std::uint32_t node = 0; node < count; ++node) {
      pass_through(nodes[node], entry(ring, node, count, rails),
                   entry(ring, (node + 1) % count, count, rails), rings[ring]);
    }
  }
  return rings;
}

RotatedRings::RotatedRings(const CollectiveTask& task, const GroupShape& shape)
    : task_(task), n_(shape.members()) {
  for (std::vector<std::uint32_t>& members : rings_over_nodes(shape)) {
    Ring made{.members = std::move(members), .place = std::vector<std::uint32_t>(n_)};
    for (std::uint32_t place = 0; place < n_; ++place) made.place[made.members[place]] = place;
    rings_.push_back(std::move(made));
  }
  for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
    for (std::uint32_t shard = 0; shard < n_; ++shard) rings_[lane].elements += share(lane, shard);
  }
}

std::int64_t RotatedRings::share(std::uint32_t lane, std::uint32_t of_shard) const {
  const std::int64_t elements = task_.bytes.value() / task_.element.value();
  return part(part(elements, of_shard, n_), lane, lanes());
}

// The rounds of a reduce-scatter pass all shards but the member's own, those of an all-gather all
// but that of the member in front, which that one has brought.
LaneSum RotatedRings::lane_sum(std::uint32_t lane, std::uint32_t member) const {
  const Ring& ring = rings_[lane];
  const std::uint32_t to = ring.members[(ring.place[member] + 1) % n_];
  std::int64_t elements = 0;
  if (task_.op != CollectiveOp::kAllGather) elements += ring.elements - share(lane, member);
  if (task_.op != CollectiveOp::kReduceScatter) elements += ring.elements - share(lane, to);
  return {.to = to, .bytes = Bytes(elements * task_.element.value())};
}

// A reduce-scatter ends with the member's own shard: round k sends on the shard of the member k + 1
// places behind. An all-gather begins with its own shard.
std::uint32_t RotatedRings::shard(std::uint32_t lane, std::uint32_t round,
                                  std::uint32_t member) const {
  const Ring& ring = rings_[lane];
  const std::uint32_t step = round % (n_ - 1);
  const std::uint32_t back = adds(round) ? step + 1 : step;
  return ring.members[(ring.place[member] + n_ - back) % n_];
}

std::optional<CollectiveMessage> RotatedRings::message(std::uint32_t lane, std::uint32_t round,
                                                       std::uint32_t member) const {
  const Ring& ring = rings_[lane];
  const std::int64_t size = share(lane, shard(lane, round, member)) * task_.element.value();
  return CollectiveMessage{.to = ring.members[(ring.place[member] + 1) % n_],
                           .bytes = Bytes(size),
                           .reduce = adds(round)};
}

void RotatedRings::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                          std::vector<std::uint32_t>& out) const {
  out.push_back(lane * n_ + shard(lane, round, member));
}

}  // namespace stepsim
