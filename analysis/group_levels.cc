#include "analysis/group_levels.h"

#include <algorithm>

#include "sim/collectives/choose_algorithm.h"
#include "sim/group_links.h"

namespace stepsim {
namespace {

struct Route {
  Bandwidth narrowest{};
  Duration trip{};
};

Route route_between(const Cluster& cluster, std::uint32_t from, std::uint32_t to,
                    const LibraryCost& cost) {
  const std::uint32_t of_node = chips_per_node(cluster.places);
  const bool inside = from / of_node == to / of_node;
  const auto kind = static_cast<std::size_t>(inside ? cluster.library.inside : HopKind::kNetwork);
  std::vector<LinkId> links;
  cluster.router->route(cluster.places.chips[from], cluster.places.chips[to], 0, links);
  Route route{.trip = cost.hop[kind]};
  for (const LinkId id : links) {
    const Link& link = cluster.fabric.link(id);
    const Bandwidth bandwidth = link.bandwidth / cost.wire[kind];
    route.narrowest =
        route.narrowest.value() == 0 ? bandwidth : std::min(route.narrowest, bandwidth);
    route.trip += link.latency;
  }
  return route;
}

}  // namespace

FormulaGroup formula_group(const Cluster& cluster, std::span<const std::uint32_t> chips,
                           const GroupShape& shape, const LibraryCost& cost) {
  const auto chip = [&](std::uint32_t position) { return chips[shape.order[position]]; };
  FormulaGroup group;
  std::uint32_t stride = 1;
  for (const GroupDimension& dimension : shape.dimensions) {
    FormulaLevel level{
        .size = dimension.size, .torus_axis = dimension.torus_axis, .wraps = dimension.wraps};
    // The slowest route between neighbours along the dimension.
    for (std::uint32_t position = 0; position < shape.members(); ++position) {
      if (position / stride % dimension.size + 1 == dimension.size) continue;
      const Route route = route_between(cluster, chip(position), chip(position + stride), cost);
      level.bandwidth = level.bandwidth.value() == 0 ? route.narrowest
                                                     : std::min(level.bandwidth, route.narrowest);
      level.trip = std::max(level.trip, route.trip);
    }
    group.levels.push_back(level);
    stride *= dimension.size;
  }
  // The first and the last position differ on every level. On a torus these may be neighbours;
  // there trips are those of the axes.
  if (!shape.dimensions.front().torus_axis) {
    group.farthest = route_between(cluster, chip(0), chip(shape.members() - 1), cost).trip;
  }
  return group;
}

ChosenCollective choose_for(const Cluster& cluster, std::span<const std::uint32_t> chips,
                            const GroupShape& shape, const CollectiveWork& work,
                            const CollectiveTask& task) {
  ChosenCollective chosen{
      .choice = choose_with_library(cluster.library, task, switches_can_add(work.type),
                                    work.algorithm, shape, links_of(cluster, chips, work.type))};
  const auto algorithm = choose_algorithm(task, chosen.choice.algorithm, shape);
  chosen.rounds = algorithm->rounds();
  chosen.lanes = algorithm->lanes();
  return chosen;
}

}  // namespace stepsim
