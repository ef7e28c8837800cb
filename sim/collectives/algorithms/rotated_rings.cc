#include "sim/collectives/algorithms/rotated_rings.h"

#include <cassert>

#include "sim/collectives/parts.h"

namespace stepsim {
namespace {

// Returns the member of a node at which ring `ring` enters node number `node`. The ring leaves the
// node at the member where it enters the next node, which must be another one. So rails alternate,
// and with an odd number of nodes a third rail is used once.
std::uint32_t entry(std::uint32_t ring, std::uint32_t node, std::uint32_t nodes,
                    std::uint32_t per_node) {
  const bool last_of_odd = nodes % 2 == 1 && node + 1 == nodes;
  return (ring + (last_of_odd ? 2 : node % 2)) % per_node;
}

}  // namespace

RotatedRings::RotatedRings(const CollectiveTask& task, const GroupShape& shape)
    : task_(task), n_(shape.members()) {
  assert(shape.dimensions.size() > 1);
  const std::uint32_t per_node = shape.dimensions.front().size;
  const std::uint32_t nodes = n_ / per_node;
  for (std::uint32_t ring = 0; ring < per_node; ++ring) {
    Ring made;
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::uint32_t enters = entry(ring, node, nodes, per_node);
      std::uint32_t leaves = entry(ring, (node + 1) % nodes, nodes, per_node);
      if (leaves == enters) leaves = (enters + 1) % per_node;  // two rails, an odd number of nodes
      const auto pass = [&](std::uint32_t inside) {
        made.members.push_back(shape.order[node * per_node + inside]);
      };
      pass(enters);
      for (std::uint32_t step = 1; step < per_node; ++step) {
        const std::uint32_t inside = (enters + step) % per_node;
        if (inside != leaves) pass(inside);
      }
      pass(leaves);
    }
    made.place.resize(n_);
    for (std::uint32_t place = 0; place < n_; ++place) made.place[made.members[place]] = place;
    rings_.push_back(std::move(made));
  }
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
  const std::int64_t elements = task_.bytes.value() / task_.element.value();
  const std::int64_t size =
      part(part(elements, shard(lane, round, member), n_), lane, lanes()) * task_.element.value();
  return CollectiveMessage{.to = ring.members[(ring.place[member] + 1) % n_],
                           .bytes = Bytes(size),
                           .reduce = adds(round)};
}

void RotatedRings::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                          std::vector<std::uint32_t>& out) const {
  out.push_back(lane * n_ + shard(lane, round, member));
}

}  // namespace stepsim
