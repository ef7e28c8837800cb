#include "sim/hardware/member_ways.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace stepsim {
namespace {

bool are_linked_directly(const Cluster& cluster, std::span<const std::uint32_t> chips) {
  std::vector<NodeId> nodes;
  for (const std::uint32_t chip : chips) nodes.push_back(cluster.places.chips[chip]);
  std::ranges::sort(nodes);
  return std::ranges::any_of(nodes, [&](NodeId node) {
    return std::ranges::any_of(cluster.fabric.links_to_chips(node), [&](LinkId link) {
      return std::ranges::binary_search(nodes, cluster.fabric.link(link).to);
    });
  });
}

// Returns whether every member can be reached from the first one, or the first one from every
// member.
bool reaches_all(const MemberWays& found, std::size_t members, bool backwards) {
  std::vector<std::vector<std::uint32_t>> next(members);
  for (const MemberWays::Way& way : found.ways) {
    next[backwards ? way.to : way.from].push_back(backwards ? way.from : way.to);
  }
  std::vector<bool> reached(members, false);
  std::vector<std::uint32_t> open = {0};
  reached[0] = true;
  std::size_t count = 1;
  while (!open.empty()) {
    const std::uint32_t member = open.back();
    open.pop_back();
    for (const std::uint32_t other : next[member]) {
      if (reached[other]) continue;
      reached[other] = true;
      ++count;
      open.push_back(other);
    }
  }
  return count == members;
}

}  // namespace

MemberWays member_ways(const Cluster& cluster, std::span<const std::uint32_t> chips) {
  const std::size_t members = chips.size();
  if (members < 3 || members > kMostPackedMembers) return {};
  if (!are_linked_directly(cluster, chips)) return {};
  const Fabric& fabric = cluster.fabric;
  MemberWays found;
  std::unordered_map<std::uint32_t, std::uint32_t> numbers;  // by LinkId; looked up only
  std::vector<LinkId> route;
  for (std::uint32_t from = 0; from < members; ++from) {
    for (std::uint32_t to = 0; to < members; ++to) {
      if (chips[from] == chips[to]) continue;
      route.clear();
      cluster.router->route(cluster.places.chips[chips[from]], cluster.places.chips[chips[to]], 0,
                            route);
      const bool passes_chip = std::any_of(route.begin(), route.end() - 1, [&](LinkId link) {
        return fabric.node(fabric.link(link).to).kind == NodeKind::kChip;
      });
      if (passes_chip) continue;
      if (found.ways.size() == kMostPackedWays) return {};
      MemberWays::Way way{.from = from, .to = to, .links = {}};
      Duration trip{};
      for (const LinkId link : route) {
        trip += fabric.link(link).latency;
        const LinkUse use = fabric.spread(link);
        const auto [number, is_new] =
            numbers.try_emplace(use.link.index(), static_cast<std::uint32_t>(found.links.size()));
        if (is_new) found.links.push_back(fabric.width(use));
        way.links.push_back(number->second);
      }
      found.trip = std::max(found.trip, trip);
      found.ways.push_back(std::move(way));
    }
  }
  if (found.ways.empty()) return {};
  const auto [narrowest, widest] = std::ranges::minmax(found.links);
  if (widest > kMostWidths * narrowest) return {};
  const bool joins = reaches_all(found, members, false) && reaches_all(found, members, true);
  return joins ? found : MemberWays{};
}

}  // namespace stepsim
