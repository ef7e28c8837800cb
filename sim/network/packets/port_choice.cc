#include "sim/network/packets/port_choice.h"

#include <algorithm>

#include "sim/base/random.h"

namespace stepsim {

PortChoice::PortChoice(const Fabric& fabric, const PacketMessages& messages)
    : fabric_(fabric), messages_(messages) {
  if (!fabric.groups().empty()) chosen_.resize(fabric.links().size());
  for (const LinkGroup& group : fabric.groups()) {
    some_down_ = some_down_ || group.down > 0;
    const auto bandwidth = [&](LinkId id) { return fabric.link(id).bandwidth; };
    fastest_.push_back(*std::ranges::max_element(group.links, {}, bandwidth));
  }
}

std::size_t PortChoice::begin_of(NodeId node, std::span<const LinkId> ports) {
  const std::uint32_t before = chosen_[ports.front().index()]++;
  return mixed_bits(std::uint64_t{node.index()} << 32U | before) % ports.size();
}

// Returns whether a packet that takes `over` for the hop at `place` can continue over all later
// hops.
bool PortChoice::leads_on(std::uint32_t place, LinkId over) const {
  if (messages_.hop(place).is_last()) return true;
  const NodeId node = fabric_.link(over).to;
  const Hop next = messages_.hop(place + 1);
  if (!next.may_choose()) return fabric_.link(next.link()).from == node;
  return std::ranges::any_of(ports_of(next, node),
                             [&](LinkId port) { return leads_on(place + 1, port); });
}

}  // namespace stepsim
