#include "topology/kinds/explicit_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "topology/graph/find_grid.h"
#include "topology/graph/graph_measures.h"
#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostGraphChips = 1 << 20;

using NodeByName = std::map<std::string, NodeId, std::less<>>;
using LinkByEnds = std::map<std::pair<NodeId, NodeId>, LinkId>;
using Ends = std::pair<std::string, std::string>;

bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && std::ranges::all_of(text, fits);
}

std::set<std::string> check_nodes(const ExplicitGraphSpec& spec, SpecChecks& checks) {
  std::set<std::string> names;
  std::int64_t chips = 0;
  for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
    const ExplicitNode& node = spec.nodes[i];
    const std::string field = fmt::format("nodes[{}].name", i);
    if (!is_name(node.name)) {
      checks.add(field,
                 fmt::format("must be letters, digits, '.', '_' or '-', is \"{}\"", node.name));
    } else if (!names.insert(node.name).second) {
      checks.add(field, fmt::format("{} is listed twice", node.name));
    }
    if (node.kind == NodeKind::kChip) ++chips;
  }
  if (chips < 1 || chips > kMostGraphChips) {
    checks.add("nodes", fmt::format("must hold 1 to {} chips, hold {}", kMostGraphChips, chips));
  }
  return names;
}

// Enters every link once for each direction.
std::set<Ends> check_links(const ExplicitGraphSpec& spec, const std::set<std::string>& names,
                           SpecChecks& checks) {
  std::set<Ends> ends;
  for (std::size_t i = 0; i < spec.links.size(); ++i) {
    const ExplicitLink& link = spec.links[i];
    const auto field = [i](const char* name) { return fmt::format("links[{}].{}", i, name); };
    if (!names.contains(link.from)) {
      checks.add(field("from"), fmt::format("\"{}\" is no node of the list", link.from));
    }
    if (!names.contains(link.to)) {
      checks.add(field("to"), fmt::format("\"{}\" is no node of the list", link.to));
    }
    if (link.from == link.to) {
      checks.add(field("to"), fmt::format("must be another node than from, both are {}", link.to));
    }
    std::vector<Ends> directions = {{link.from, link.to}};
    if (!link.one_way) directions.emplace_back(link.to, link.from);
    for (const auto& [from, to] : directions) {
      if (from == to || ends.insert({from, to}).second) continue;
      checks.add(fmt::format("links[{}]", i),
                 fmt::format("{}>{} is listed twice; parallel cables are one link of their summed "
                             "bandwidth",
                             from, to));
    }
  }
  return ends;
}

void check_route(const ExplicitGraphSpec& spec, std::size_t number, const std::set<Ends>& ends,
                 SpecChecks& checks) {
  const std::vector<std::string>& route = spec.routes[number];
  const std::string field = fmt::format("routes[{}]", number);
  if (route.size() < 2) {
    checks.add(field, fmt::format("must name at least two nodes, names {}", route.size()));
    return;
  }
  for (const std::string& end : {route.front(), route.back()}) {
    const auto is_end = [&end](const ExplicitNode& node) {
      return node.name == end && node.kind == NodeKind::kChip;
    };
    if (std::ranges::none_of(spec.nodes, is_end)) {
      checks.add(field, fmt::format("must lead from chip to chip, \"{}\" is none", end));
    }
  }
  for (std::size_t hop = 0; hop + 1 < route.size(); ++hop) {
    if (ends.contains({route[hop], route[hop + 1]})) continue;
    checks.add(field, fmt::format("there is no link {}>{}", route[hop], route[hop + 1]));
  }
  const std::set<std::string> once(route.begin(), route.end());
  if (once.size() < route.size()) checks.add(field, "must visit no node twice");
  for (std::size_t earlier = 0; earlier < number; ++earlier) {
    const std::vector<std::string>& other = spec.routes[earlier];
    if (other.empty() || other.front() != route.front() || other.back() != route.back()) continue;
    checks.add(field, fmt::format("routes[{}] leads from {} to {} too", earlier, route.front(),
                                  route.back()));
  }
}

void check_levels(const ExplicitGraphSpec& spec, SpecChecks& checks) {
  if (spec.levels.empty()) return;
  const std::int64_t chips = std::ranges::count(spec.nodes, NodeKind::kChip, &ExplicitNode::kind);
  std::int64_t product = 1;
  std::set<std::string> names;
  for (std::size_t i = 0; i < spec.levels.size(); ++i) {
    const ExplicitLevel& level = spec.levels[i];
    const std::string field = fmt::format("levels[{}].", i);
    if (!is_name(level.name)) {
      checks.add(field + "name",
                 fmt::format("must be letters, digits, '.', '_' or '-', is \"{}\"", level.name));
    } else if (!names.insert(level.name).second) {
      checks.add(field + "name", fmt::format("{} is listed twice", level.name));
    }
    if (product <= kMostGraphChips) product *= std::max(level.size, 1);
  }
  if (product != chips) {
    checks.add("levels", fmt::format("sizes must multiply to the number of chips, {}; make {}{}",
                                     chips, product > kMostGraphChips ? "more than " : "",
                                     std::min(product, kMostGraphChips)));
  }
}

struct Parts {
  BuiltTopology built;
  NodeByName nodes;
  LinkByEnds links;
};

void connect(const ExplicitLink& link, Parts& parts) {
  const NodeId from = parts.nodes.find(link.from)->second;
  const NodeId to = parts.nodes.find(link.to)->second;
  Fabric& fabric = parts.built.fabric;
  parts.links[{from, to}] = fabric.connect_one_way(from, to, link.bandwidth, link.latency);
  if (link.one_way) return;
  parts.links[{to, from}] = fabric.connect_one_way(to, from, link.bandwidth, link.latency);
}

// Makes nodes, links and levels. REQUIRES: nothing is wrong with the lists.
Parts assemble(const ExplicitGraphSpec& spec) {
  Parts parts;
  for (const bool chips : {true, false}) {
    for (const ExplicitNode& node : spec.nodes) {
      if ((node.kind == NodeKind::kChip) != chips) continue;
      const NodeId id = parts.built.fabric.add(node.kind, node.name);
      parts.nodes[node.name] = id;
      if (chips) parts.built.places.chips.push_back(id);
    }
  }
  for (const ExplicitLink& link : spec.links) connect(link, parts);
  for (const ExplicitLevel& level : spec.levels) {
    parts.built.places.levels.push_back({.name = level.name,
                                         .size = static_cast<std::uint32_t>(level.size),
                                         .members = level.kind.value_or(LevelMembers::kNode),
                                         .members_derived = !level.kind});
  }
  if (spec.levels.empty()) {
    parts.built.places.levels = {
        {.name = "chip",
         .size = static_cast<std::uint32_t>(parts.built.places.chips.size()),
         .members_derived = true}};
  }
  return parts;
}

// NarrowestRoutes are the narrowest links on the ways from the first chip to others.
struct NarrowestRoutes {
  std::optional<Bandwidth> inside;   // to the chips of its block
  std::optional<Bandwidth> outside;  // to all others
  bool one_switch = true;            // no route passes two switches
};

NarrowestRoutes routes_of_first(const BuiltTopology& built, std::uint32_t block) {
  NarrowestRoutes found;
  const std::vector<NodeId>& chips = built.places.chips;
  std::vector<LinkId> route;
  for (std::uint32_t to = 1; to < chips.size(); ++to) {
    route.clear();
    built.router->route(chips.front(), chips[to], 0, route);
    std::optional<Bandwidth>& narrowest = to < block ? found.inside : found.outside;
    int switches = 0;
    for (const LinkId link : route) {
      const Bandwidth width = built.fabric.link(link).bandwidth;
      narrowest = std::min(narrowest.value_or(width), width);
      if (built.fabric.node(built.fabric.link(link).to).kind != NodeKind::kChip) ++switches;
    }
    found.one_switch = found.one_switch && switches <= 1;
  }
  return found;
}

// Finds out which levels nobody described are inside a node. Complexity: a route to each chip from
// the first one, for each level.
void derive_members(BuiltTopology& built) {
  std::vector<Level>& levels = built.places.levels;
  if (std::ranges::none_of(levels, &Level::members_derived)) return;
  std::uint32_t block = 1;
  std::size_t inner = 0;  // levels inside a node
  for (std::size_t level = 0; level < levels.size() && inner == 0; ++level) {
    block *= levels[level].size;
    const NarrowestRoutes routes = routes_of_first(built, block);
    const bool is_node = routes.outside ? routes.inside > routes.outside : routes.one_switch;
    if (block > 1 && is_node) inner = level + 1;
  }
  for (std::size_t level = 0; level < inner; ++level) {
    if (levels[level].members_derived) levels[level].members = LevelMembers::kChip;
  }
}

class ExplicitRouter : public Router {
 public:
  using Routes = std::map<std::pair<NodeId, NodeId>, std::vector<LinkId>>;

  ExplicitRouter(const Fabric& fabric, PathMetric metric, std::optional<PathChoice> choice,
                 Routes routes, std::optional<GridRouter> grid)
      : paths_(fabric, metric, choice), routes_(std::move(routes)), grid_(std::move(grid)) {}

  void route(NodeId from, NodeId to, std::uint64_t flow_key,
             std::vector<LinkId>& out) const override {
    if (const auto listed = routes_.find({from, to}); listed != routes_.end()) {
      out.insert(out.end(), listed->second.begin(), listed->second.end());
    } else if (grid_) {
      grid_->route(from, to, flow_key, out);
    } else {
      paths_.append(from, to, out, flow_key);
    }
  }

 private:
  ShortestPaths paths_;
  Routes routes_;
  std::optional<GridRouter> grid_;
};

// Returns the torus or mesh that the graph is: that of the levels, if they are given and are its
// axes.
std::optional<ChipGrid> grid_of(const ExplicitGraphSpec& spec, const Fabric& fabric) {
  if (fabric.nodes().size() < 2) return std::nullopt;
  if (!spec.levels.empty()) {
    std::vector<std::uint32_t> sizes;
    for (const ExplicitLevel& level : spec.levels) {
      sizes.push_back(static_cast<std::uint32_t>(level.size));
    }
    if (auto grid = find_grid(fabric, sizes)) return grid;
  }
  return find_grid(fabric);
}

// Makes torus axes of the levels if they are the axes of the grid; else notes the grid beside them.
void name_axes(const ExplicitGraphSpec& spec, const ChipGrid& grid, Places& places) {
  constexpr std::array kNames = {"x", "y", "z", "w"};
  std::vector<Level> axes;
  for (const GridAxis& axis : grid.axes) {
    axes.push_back({.name = kNames[axes.size()],
                    .size = axis.size,
                    .kind = LevelKind::kTorusAxis,
                    .members = LevelMembers::kChip,
                    .wraps = axis.wraps});
  }
  std::vector<Level*> given;
  for (Level& level : places.levels) {
    if (level.size > 1) given.push_back(&level);
  }
  const bool are_axes = std::ranges::equal(
      given, axes, [](const Level* level, const Level& axis) { return level->size == axis.size; });
  if (!grid.in_order() || !(spec.levels.empty() || are_axes)) {
    // As on axes, no chips of a torus make a node unless a level says so.
    for (Level& level : places.levels) level.members_derived = false;
    places.grid = PlacedGrid{.axes = std::move(axes), .place = grid.place};
  } else if (spec.levels.empty()) {
    places.levels = std::move(axes);
  } else {
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      given[axis]->kind = axes[axis].kind;
      given[axis]->wraps = axes[axis].wraps;
      given[axis]->members = LevelMembers::kChip;
      given[axis]->members_derived = false;
    }
  }
}

}  // namespace

std::vector<Problem> check(const ExplicitGraphSpec& spec) {
  SpecChecks checks(explicit_graph_fields(), spec);
  const std::set<std::string> names = check_nodes(spec, checks);
  const std::set<Ends> ends = check_links(spec, names, checks);
  for (std::size_t number = 0; number < spec.routes.size(); ++number) {
    check_route(spec, number, ends, checks);
  }
  check_levels(spec, checks);
  if (spec.routing == PathRule::kAdaptive) {
    checks.add("routing", "must be destination or ecmp in a listed graph, is adaptive");
  }
  if (!checks.found_none()) return checks.problems();

  const Fabric fabric = assemble(spec).built.fabric;
  if (const std::vector<NodeId> lost = chips_cut_off(fabric); !lost.empty()) {
    checks.add("links", "must join all chips in both directions; " + cut_off_text(fabric, lost));
  }
  return checks.problems();
}

BuiltTopology build(const ExplicitGraphSpec& spec) {
  assert(check(spec).empty());
  Parts parts = assemble(spec);
  ExplicitRouter::Routes routes;
  for (const std::vector<std::string>& names : spec.routes) {
    std::vector<LinkId> links;
    for (std::size_t hop = 0; hop + 1 < names.size(); ++hop) {
      links.push_back(parts.links.at(
          {parts.nodes.find(names[hop])->second, parts.nodes.find(names[hop + 1])->second}));
    }
    routes[{parts.nodes.find(names.front())->second, parts.nodes.find(names.back())->second}] =
        std::move(links);
  }
  std::optional<GridRouter> in_axes;
  if (auto grid = grid_of(spec, parts.built.fabric)) {
    name_axes(spec, *grid, parts.built.places);
    if (spec.metric == PathMetric::kHops) {
      in_axes.emplace(grid->axes, std::move(grid->cables), std::move(grid->place));
    }
  }
  std::optional<PathChoice> choice;
  if (spec.routing) choice = PathChoice{.rule = *spec.routing, .seed = spec.routing_seed};
  parts.built.router = std::make_unique<ExplicitRouter>(parts.built.fabric, spec.metric, choice,
                                                        std::move(routes), std::move(in_axes));
  derive_members(parts.built);
  return std::move(parts.built);
}

}  // namespace stepsim
