#include "sim/network/transport/path_table.h"

#include <algorithm>

#include "sim/network/transport/packet.h"

namespace stepsim {

PathTable::PathTable(const Fabric& fabric)
    : fabric_(fabric),
      from_(fabric.nodes().size()),
      into_(fabric.nodes().size()),
      ways_(fabric.nodes().size()) {
  for (std::uint32_t i = 0; i < fabric.links().size(); ++i) {
    from_[fabric.link(LinkId(i)).from.index()].push_back(LinkId(i));
    into_[fabric.link(LinkId(i)).to.index()].push_back(LinkId(i));
  }
}

void PathTable::make(NodeId to, Ways& ways) const {
  const std::size_t nodes = from_.size();
  ways.distance.assign(nodes, kNoIndex);
  ways.distance[to.index()] = 0;
  std::vector<NodeId> reached{to};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const LinkId link : into_[reached[i].index()]) {
      const NodeId before = fabric_.link(link).from;
      if (ways.distance[before.index()] != kNoIndex) continue;
      ways.distance[before.index()] = ways.distance[reached[i].index()] + 1;
      reached.push_back(before);
    }
  }
  ways.begin.reserve(nodes + 1);
  for (std::size_t node = 0; node < nodes; ++node) {
    ways.begin.push_back(static_cast<std::uint32_t>(ways.links.size()));
    if (ways.distance[node] == kNoIndex || ways.distance[node] == 0) continue;
    for (const LinkId link : from_[node]) {
      const std::uint32_t rest = ways.distance[fabric_.link(link).to.index()];
      if (rest != kNoIndex && rest + 1 == ways.distance[node]) ways.links.push_back(link);
    }
    ways.widest =
        std::max(ways.widest, static_cast<std::uint32_t>(ways.links.size()) - ways.begin.back());
  }
  ways.begin.push_back(static_cast<std::uint32_t>(ways.links.size()));
}

std::uint32_t PathTable::count(NodeId from, NodeId to, std::uint32_t most) {
  std::uint64_t paths = 1;
  for (NodeId node = from; node != to && paths < most;) {
    const std::span<const LinkId> ways = next(node, to);
    if (ways.empty()) return 0;
    paths *= ways.size();
    node = fabric_.link(ways.front()).to;
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(paths, most));
}

}  // namespace stepsim
