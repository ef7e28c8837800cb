// PortChoice chooses ports like adaptive switches. If the next link of a packet's route belongs to
// a group (fabric.h), the packet takes the least loaded link of that group that leaves the node
// where it is. Both packet networks use it.
//
// Among equally loaded ports the switch takes the first one from a starting place. That place
// changes with every packet as if at random (a hash of the switch and of a count), so that packets
// that never queue are spread evenly too. Simple turns would not work: if packets arrive in step,
// as those of collectives do, the same sender would get the same port every time. Nothing else is
// remembered, and the queues further on are not known.
//
// If links of a group are down, a port is only taken if the rest of the route can be reached behind
// it. Subnet managers likewise leave other ports out of the group of a destination.
//
// Cost: O(ports) per choice.

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

  // Returns the link for a packet that came over the link `over` and whose next hop is at `place`.
  // load(link): content of a port's queue, in any unit.
  template <typename Load>
  LinkId after(LinkId over, std::uint32_t place, const Load& load) {
    const Hop hop = messages_.hop(place);
    if (!hop.may_choose()) return hop.link();
    return choose(hop, place, fabric_.link(over).to, load);
  }

  // The same for a packet at its source.
  template <typename Load>
  LinkId first(std::uint32_t place, const Load& load) {
    const Hop hop = messages_.hop(place);
    if (!hop.may_choose()) return hop.link();
    return choose(hop, place, fabric_.link(hop.link()).from, load);
  }

  // Returns the fastest link that a packet whose next hop is at `place` may take.
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
  std::vector<std::uint32_t> chosen_;  // packets so far, by a choice's first port
  std::vector<LinkId> fastest_;        // by LinkGroupId
  bool some_down_ = false;
};

}  // namespace stepsim
