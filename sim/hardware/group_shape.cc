#include "sim/hardware/group_shape.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/hardware/group_links.h"
#include "sim/hardware/member_ways.h"
#include "sim/hardware/switch_tree.h"

namespace stepsim {
namespace {

GroupShape in_given_order(std::size_t members) {
  GroupShape shape;
  shape.order.resize(members);
  std::iota(shape.order.begin(), shape.order.end(), 0U);
  if (members > 1) shape.dimensions = {{.size = static_cast<std::uint32_t>(members)}};
  return shape;
}

// Returns the dimension formed by members at these coordinates of a level. On a torus axis they
// form a ring if they go all the way round in equal strides.
GroupDimension dimension_of(const Level& level, const std::vector<std::uint32_t>& taken) {
  GroupDimension dimension{.size = static_cast<std::uint32_t>(taken.size()),
                           .torus_axis = level.kind == LevelKind::kTorusAxis};
  const std::uint32_t stride = taken[1] - taken[0];
  bool equal_strides = stride * dimension.size == level.size;
  for (std::size_t i = 1; i < taken.size(); ++i) {
    equal_strides = equal_strides && taken[i] - taken[i - 1] == stride;
  }
  dimension.wraps = dimension.torus_axis && level.wraps && equal_strides;
  dimension.twists = level.twists && dimension.size == level.size;
  return dimension;
}

// Returns the box of levels, without the tree of switches. `chips`: the numbers of the members'
// chips in the box of all levels.
GroupShape box_of(const Places& places, std::span<const std::uint32_t> chips) {
  const std::vector<Level>& levels = places.levels;
  GroupShape shape;
  std::vector<std::uint32_t> position(chips.size(), 0);
  std::uint32_t box = 1;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::vector<std::uint32_t> coordinate(chips.size());
    std::ranges::transform(chips, coordinate.begin(),
                           [&](std::uint32_t chip) { return places.coordinate(chip, level); });
    std::vector<std::uint32_t> taken = coordinate;
    std::ranges::sort(taken);
    taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
    const auto size = static_cast<std::uint32_t>(taken.size());
    if (size == 1) continue;
    for (std::size_t i = 0; i < chips.size(); ++i) {
      const auto place = std::ranges::lower_bound(taken, coordinate[i]);
      position[i] += static_cast<std::uint32_t>(place - taken.begin()) * box;
    }
    shape.dimensions.push_back(dimension_of(levels[level], taken));
    if (std::size_t{box} * size > chips.size()) return in_given_order(chips.size());
    box *= size;
  }
  if (box != chips.size() || shape.dimensions.size() > kMaxDimensions) {
    return in_given_order(chips.size());
  }
  // A twist's cables join rows of the whole torus, so a part of the torus has no twist.
  if (chips.size() != places.chips.size()) {
    for (GroupDimension& dimension : shape.dimensions) dimension.twists = false;
  }
  shape.order.assign(chips.size(), 0);
  std::vector<bool> taken(chips.size(), false);
  for (std::uint32_t member = 0; member < chips.size(); ++member) {
    if (taken[position[member]]) return in_given_order(chips.size());
    taken[position[member]] = true;
    shape.order[position[member]] = member;
  }
  return shape;
}

// Gives the members of a group that fills no box the nodes in which they lie, in the order in which
// the group's first members of each are listed. Nodes that are alike make a box of two dimensions.
GroupShape by_nodes(const Cluster& cluster, std::span<const std::uint32_t> chips,
                    GroupShape shape) {
  const std::uint32_t per_node = chips_per_node(cluster.places);
  const std::vector<std::uint32_t> nodes = nodes_of(cluster.places, chips);
  const auto node_of = [&](std::uint32_t member) { return nodes[member]; };
  std::vector<std::uint32_t> order = shape.order;
  std::ranges::stable_sort(order, {}, node_of);
  std::vector<std::uint32_t> sizes;
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (place == 0 || node_of(order[place]) != node_of(order[place - 1])) sizes.push_back(0);
    ++sizes.back();
  }
  if (sizes.size() == 1 || sizes.size() == chips.size()) return shape;
  const auto place_of = [&](std::uint32_t member) { return chips[member] % per_node; };
  for (std::size_t first = 0, node = 0; node < sizes.size(); first += sizes[node++]) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, begin + sizes[node],
              [&](std::uint32_t a, std::uint32_t b) { return place_of(a) < place_of(b); });
  }
  bool alike = std::ranges::count(sizes, sizes.front()) == std::ssize(sizes);
  for (std::size_t i = sizes.front(); alike && i < order.size(); ++i) {
    alike = place_of(order[i]) == place_of(order[i - sizes.front()]);
  }
  shape.order = std::move(order);
  if (alike) {  // a box of a node and of nodes that fill no box themselves
    shape.dimensions = {{.size = sizes.front()},
                        {.size = static_cast<std::uint32_t>(sizes.size())}};
    return shape;
  }
  shape.uneven_nodes = std::move(sizes);
  return shape;
}

// Returns the members of each node, the same for all: the group fills a box of levels.
std::uint32_t node_size(const Cluster& cluster, std::span<const std::uint32_t> chips,
                        const GroupShape& shape) {
  const std::uint32_t per_node = chips_per_node(cluster.places);
  const auto node_of = [&](std::uint32_t position) {
    return chips[shape.order[position]] / per_node;
  };
  std::uint32_t size = 1;
  while (size < shape.members() && node_of(size) == node_of(0)) ++size;
  return size;
}

std::vector<SwitchTree> rail_trees(const Cluster& cluster, std::span<const std::uint32_t> chips,
                                   const GroupShape& shape) {
  const std::uint32_t rails = shape.node_size();
  std::vector<SwitchTree> trees;
  for (std::uint32_t rail = 0; rail < rails; ++rail) {
    std::vector<std::uint32_t> on_rail;
    for (std::uint32_t position = rail; position < shape.members(); position += rails) {
      on_rail.push_back(chips[shape.order[position]]);
    }
    trees.push_back(switch_tree(cluster, on_rail));
    if (trees.back().nodes.empty()) return {};
  }
  return trees;
}

// Returns the tree inside each node. Empty unless every node has one switch for all of its members.
std::vector<SwitchTree> node_trees(const Cluster& cluster, std::span<const std::uint32_t> chips,
                                   const GroupShape& shape) {
  const std::uint32_t per_node = shape.node_size();
  std::vector<SwitchTree> trees;
  for (std::uint32_t first = 0; first < shape.members(); first += per_node) {
    std::vector<std::uint32_t> in_node;
    for (std::uint32_t place = 0; place < per_node; ++place) {
      in_node.push_back(chips[shape.order[first + place]]);
    }
    trees.push_back(switch_tree(cluster, in_node));
    if (trees.back().nodes.size() != per_node + 1) return {};
  }
  return trees;
}

// Returns the box of the grid that the chips form whatever their numbers; a box of levels if the
// members do not fill one.
GroupShape box_of(const Cluster& cluster, std::span<const std::uint32_t> chips) {
  if (cluster.places.grid) {
    const Places grid{.levels = cluster.places.grid->axes, .chips = cluster.places.chips};
    std::vector<std::uint32_t> places(chips.size());
    std::ranges::transform(chips, places.begin(),
                           [&](std::uint32_t chip) { return cluster.places.grid->place[chip]; });
    if (GroupShape shape = box_of(grid, places); shape.is_torus()) return shape;
  }
  return box_of(cluster.places, chips);
}

// Returns whether the links along each axis are alike, but those of one axis are wider than those
// of another. REQUIRES: a torus.
bool has_unequal_axes(const Cluster& cluster, std::span<const std::uint32_t> chips,
                      const GroupShape& shape) {
  std::optional<Bandwidth> narrowest;
  std::optional<Bandwidth> widest;
  std::uint32_t stride = 1;
  for (const GroupDimension& dimension : shape.dimensions) {
    std::optional<Bandwidth> of_axis;
    for (std::uint32_t position = 0; position < shape.members(); ++position) {
      if (position / stride % dimension.size + 1 == dimension.size) continue;
      const Fabric& fabric = cluster.fabric;
      const NodeId from = cluster.places.chips[chips[shape.order[position]]];
      const NodeId to = cluster.places.chips[chips[shape.order[position + stride]]];
      const std::span<const LinkId> links = fabric.links_to_chips(from);
      const auto link =
          std::ranges::find_if(links, [&](LinkId each) { return fabric.link(each).to == to; });
      if (link == links.end()) return false;
      const Bandwidth width = fabric.link(*link).bandwidth;
      if (of_axis.value_or(width) != width) return false;
      of_axis = width;
    }
    narrowest = std::min(narrowest.value_or(*of_axis), *of_axis);
    widest = std::max(widest.value_or(*of_axis), *of_axis);
    stride *= dimension.size;
  }
  return narrowest < widest;
}

}  // namespace

GroupShape describe(const Cluster& cluster, std::span<const std::uint32_t> chips) {
  GroupShape shape = box_of(cluster, chips);
  if (shape.has_torus_axis()) {
    // On a twisted torus rings along an axis do not close.
    if (shape.is_torus() && (shape.twists() || has_unequal_axes(cluster, chips, shape))) {
      shape.ways = member_ways(cluster, chips);
    }
    return shape;
  }
  shape.ways = member_ways(cluster, chips);
  if (shape.dimensions.size() == 1 && shape.members() > 2) {
    shape = by_nodes(cluster, chips, std::move(shape));
  }
  if (shape.dimensions.size() > 1) {
    const std::uint32_t in_node = node_size(cluster, chips, shape);
    if (in_node < shape.members()) shape.per_node = in_node;
  }
  shape.tree = switch_tree(cluster, chips);
  if (shape.tree.nodes.empty() && shape.dimensions.size() > 1) {
    shape.rail_trees = rail_trees(cluster, chips, shape);
    shape.node_trees = node_trees(cluster, chips, shape);
  }
  return shape;
}

}  // namespace stepsim
