#include "sim/hardware/switch_tree.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

namespace stepsim {
namespace {

// Returns the link in the other direction of the same cable. Builders create the two links one
// after the other.
std::optional<LinkId> back_of(const Fabric& fabric, LinkId link) {
  const Link& there = fabric.link(link);
  const std::uint32_t index = link.index();
  for (const std::uint32_t other : {index ^ 1U, index + 1, index - 1}) {
    if (other >= fabric.links().size()) continue;
    const Link& back = fabric.link(LinkId(other));
    if (back.from == there.to && back.to == there.from) return LinkId(other);
  }
  const auto found = std::ranges::find_if(fabric.links(), [&](const Link& back) {
    return back.from == there.to && back.to == there.from;
  });
  if (found == fabric.links().end()) return std::nullopt;
  return LinkId(static_cast<std::uint32_t>(found - fabric.links().begin()));
}

}  // namespace

SwitchTree switch_tree(const Cluster& cluster, std::span<const std::uint32_t> chips) {
  if (chips.size() < 2) return {};
  const Fabric& fabric = cluster.fabric;
  const auto node_of = [&](std::size_t member) { return cluster.places.chips[chips[member]]; };
  SwitchTree tree;
  tree.nodes.resize(chips.size());
  std::unordered_map<std::uint32_t, std::uint32_t>
      place;  // index in the tree, by node of the fabric
  std::vector<LinkId> route;
  // The second chip's route ends at the switch that becomes the root. The first chip hangs below
  // that switch.
  cluster.router->route(node_of(1), node_of(0), 0, route);
  if (route.size() < 2) return {};
  const NodeId root = fabric.link(route.back()).from;
  const auto root_place = static_cast<std::uint32_t>(chips.size());
  place.emplace(root.index(), root_place);
  tree.nodes.push_back({.parent = root_place, .up = {}, .down = {}});
  const auto up_of_first = back_of(fabric, route.back());
  if (!up_of_first) return {};
  tree.nodes[0] = {.parent = root_place, .up = *up_of_first, .down = route.back()};

  for (std::size_t member = 1; member < chips.size(); ++member) {
    route.clear();
    cluster.router->route(node_of(member), node_of(0), 0, route);
    if (route.size() < 2 || fabric.link(route.back()).from != root) return {};
    std::uint32_t lower = static_cast<std::uint32_t>(member);
    for (const LinkId link : route) {
      const NodeId upper = fabric.link(link).to;
      if (fabric.node(upper).kind != NodeKind::kSwitch) return {};
      const auto [found, is_new] =
          place.try_emplace(upper.index(), static_cast<std::uint32_t>(tree.nodes.size()));
      const std::uint32_t parent = found->second;
      if (is_new) tree.nodes.emplace_back();
      const auto down = back_of(fabric, link);
      if (!down) return {};
      tree.nodes[lower] = {.parent = parent, .up = link, .down = *down};
      if (!is_new) break;  // the rest of the route is already in the tree
      lower = parent;
    }
  }
  return tree;
}

}  // namespace stepsim
