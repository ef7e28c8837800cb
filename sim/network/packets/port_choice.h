// PortChoice is what adaptive switches do with a packet: where the next link of its route belongs
// to a group (fabric.h), the packet takes the least loaded of the links of that group that leave
// the node where it is. Both packet networks choose their ports with it.
//
// Among equally loaded ports the switch takes the first from a place on that changes with every
// packet as if at random (a hash of the switch and of a count), so that packets that never queue
// are spread evenly too. Turns would not do: where packets come in step, as those of collectives,
// the same sender would get the same port every time. Nothing else is remembered, and nothing is
// known of the queues further on.
//
// Where links of a group are down, a port is only taken if the rest of the route can be gone from
// behind it: subnet managers leave others out of the group of a destination.
//
// Cost: O(ports) a choice.

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/packets/packet_messages.h"

namespace stepsim {

class PortChoice {
 public:
  // Both outlive this.
  PortChoice(const Fabric& fabric, const PacketMessages& messages);

  // The link that a packet takes that came over the link `over` and whose next hop is at `place`.
  // load(link): how much there is in the queue of a port, in any unit.
  template <typename Load>
  LinkId after(LinkId over, std::uint32_t place, const Load& load) {
    const Hop hop = messages_.hop(place);
    if (!hop.may_choose()) return hop.link();
    return choose(hop, place, fabric_.link(over).to, load);
  }

  // The same of a packet at its source.
  template <typename Load>
  LinkId first(std::uint32_t place, const Load& load) {
    const Hop hop = messages_.hop(place);
    if (!hop.may_choose()) return hop.link();
    return choose(hop, place, fabric_.link(hop.link()).from, load);
  }

  // The fastest link that a packet whose next hop is at `place` may come to.
  LinkId fastest(std::uint32_t place) const {
    const Hop hop = messages_.hop(place);
    if (!hop.may_choose()) return hop.link();
    return fastest_[fabric_.group_of(hop.link())->index()];
  }

 private:
  template <typename Load>
  LinkId choose(Hop hop, std::uint32_t place, NodeId node, const Load& load) {
    const std::span<const LinkId> ports = ports_of(hop, node);
    assert(!ports.empty());
    const std::size_t first = begin_of(node, ports);
    std::optional<LinkId> best;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const LinkId port = ports[(first + i) % ports.size()];
      if (best && load(port) >= load(*best)) continue;
      if (some_down_ && !leads_on(place, port)) continue;
      best = port;
    }
    assert(best);
    return *best;
  }

  std::span<const LinkId> ports_of(Hop hop, NodeId node) const {
    return fabric_.alternatives(*fabric_.group_of(hop.link()), node);
  }
  std::size_t begin_of(NodeId node, std::span<const LinkId> ports);
  bool leads_on(std::uint32_t place, LinkId over) const;

  const Fabric& fabric_;
  const PacketMessages& messages_;
  std::vector<std::uint32_t> chosen_;  // packets so far, by the first of the ports of a choice
  std::vector<LinkId> fastest_;        // by LinkGroupId
  bool some_down_ = false;
};

}  // namespace stepsim
