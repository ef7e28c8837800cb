#include "topology/graph/level_bandwidth.h"

#include <cstddef>

#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

Bandwidth to_peers(const BuiltTopology& built, std::uint32_t stride, std::uint32_t members) {
  const std::vector<NodeId>& chips = built.places.chips;
  std::vector<NodeId> peers;
  std::vector<bool> usable(built.fabric.links().size(), false);
  std::vector<LinkId> route;
  for (std::uint32_t member = 1; member < members; ++member) {
    peers.push_back(chips[std::size_t{member} * stride]);
    route.clear();
    built.router->route(chips[0], peers.back(), 0, route);
    for (const LinkId link : route) {
      usable[link.index()] = true;
      const auto group = built.fabric.group_of(link);
      if (!group) continue;
      for (const LinkId other : built.fabric.group(*group).links) usable[other.index()] = true;
    }
  }
  return flow_between(built.fabric, {chips[0]}, peers, &usable);
}

}  // namespace

std::vector<LevelBandwidth> bandwidth_by_level(const BuiltTopology& built) {
  const std::vector<NodeId>& chips = built.places.chips;
  std::vector<LevelBandwidth> levels;
  std::uint32_t stride = 1;
  for (const Level& level : built.places.levels) {
    const auto first_outside = chips.begin() + static_cast<std::ptrdiff_t>(stride);
    levels.push_back({.level = level.name,
                      .members = level.size,
                      .group_chips = stride,
                      .groups = static_cast<std::uint32_t>(chips.size()) / stride,
                      .to_peers = to_peers(built, stride, level.size),
                      .out_of_group = flow_between(built.fabric, {chips.begin(), first_outside},
                                                   {first_outside, chips.end()})});
    stride *= level.size;
  }
  return levels;
}

}  // namespace stepsim
