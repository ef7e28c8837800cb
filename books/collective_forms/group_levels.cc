#include "books/collective_forms/group_levels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "books/collective_forms/counted_form.h"
#include "sim/collectives/algorithms/trees/tree_packing.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/hardware/group_links.h"

namespace stepsim {
namespace {

constexpr double kAgreement = 5e-4;  // relative, of two forms of one collective
// Collectives with more messages than this are not counted.
constexpr std::uint64_t kMostSlots = 1U << 24;

struct Route {
  std::vector<std::pair<LinkId, Bandwidth>> links;
  Duration trip{};
};

HopKind kind_between(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t of_node = chips_per_node(cluster.places);
  return from / of_node == to / of_node ? cluster.library.inside : HopKind::kNetwork;
}

Route route_between(const Cluster& cluster, std::uint32_t from, std::uint32_t to,
                    const LibraryCost& cost) {
  const auto kind = static_cast<std::size_t>(kind_between(cluster, from, to));
  std::vector<LinkId> links;
  cluster.router->route(cluster.places.chips[from], cluster.places.chips[to], 0, links);
  Route route{.links = {}, .trip = cost.hop[kind]};
  for (const LinkId id : links) {
    const LinkUse use = cluster.fabric.spread(id);
    route.links.emplace_back(use.link, cluster.fabric.width(use) / cost.wire[kind]);
    route.trip += cluster.fabric.link(id).latency;
  }
  return route;
}

// Returns, for each level, the most that a member sends to members in other boxes of the levels
// inside it, or receives from them.
std::vector<Bytes> busiest_ports(const ByteMatrix& matrix, const GroupShape& shape) {
  std::vector<Bytes> result;
  std::uint32_t box = 1;
  for (const GroupDimension& dimension : shape.dimensions) {
    std::vector<Bytes> sent(shape.members());
    std::vector<Bytes> received(shape.members());
    for (std::uint32_t from = 0; from < shape.members(); ++from) {
      for (std::uint32_t to = 0; to < shape.members(); ++to) {
        if (from / box == to / box) continue;
        const Bytes bytes = matrix.between(shape.order[from], shape.order[to]);
        sent[from] += bytes;
        received[to] += bytes;
      }
    }
    result.push_back(
        std::max(*std::ranges::max_element(sent), *std::ranges::max_element(received)));
    box *= dimension.size;
  }
  return result;
}

std::string counted_text(const std::optional<CollectiveFormula>& book, bool overlapped) {
  // The form of trees over nodes leaves out their trips, so the counted form gives them.
  if (book && book->text.ends_with("trips of the trees")) return book->text;
  return overlapped ? "max_links B/W + trips, counted over the routes"
                    : "sum over rounds of max_links B/W + t, counted over the routes";
}

std::string stepped_text(const std::optional<CollectiveFormula>& book, const CountedForm& counted) {
  if (!counted.stepped_exact) return "max(busiest link, longest way), counted over the routes";
  if (!counted.in_step) return "longest way through the rounds, counted over the routes";
  return counted_text(book, false);
}

// Returns whether all routes take as long if all are used at once, and sending takes as long as
// receiving.
bool are_alike(const std::vector<Route>& routes) {
  std::map<LinkId, double> loads;  // seconds per byte
  for (const Route& route : routes) {
    for (const auto& [link, bandwidth] : route.links) loads[link] += 1 / bandwidth.value();
  }
  const auto load = [&loads](const auto& link) { return loads.at(link.first); };
  const auto slowest = [&](const Route& route) {
    return load(std::ranges::max(route.links, {}, load));
  };
  const double first = slowest(routes.front());
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-9 * a; };
  return std::ranges::all_of(routes, [&](const Route& route) {
    return route.trip == routes.front().trip && same(first, slowest(route)) &&
           same(load(route.links.front()), load(route.links.back()));
  });
}

// Returns whether members see the same wherever they are: on each level the routes to all
// neighbours are alike, and those to the members half the level away, and levels do not share
// links. There may be two levels, or the axes of one torus. Forms of stepped collectives, which
// know one member for all, then hold.
bool is_even(const Cluster& cluster, std::span<const std::uint32_t> chips, const GroupShape& shape,
             const LibraryCost& cost) {
  const auto axes = std::ranges::count_if(
      shape.dimensions, [](const GroupDimension& each) { return each.torus_axis; });
  const auto levels = static_cast<std::ptrdiff_t>(shape.dimensions.size());
  if (axes != levels && (axes != 0 || levels > 2)) return false;
  std::set<LinkId> inside;  // links of the levels before
  std::uint32_t stride = 1;
  for (const GroupDimension& dimension : shape.dimensions) {
    std::set<LinkId> links;
    for (const std::uint32_t shift : {1U, dimension.torus_axis ? 1U : dimension.size / 2}) {
      std::vector<Route> routes;
      for (std::uint32_t position = 0; position < shape.members(); ++position) {
        const std::uint32_t place = position / stride % dimension.size;
        const std::uint32_t end = (place + shift) % dimension.size;
        if (dimension.torus_axis && end == 0) continue;
        const std::uint32_t to = position - place * stride + end * stride;
        routes.push_back(
            route_between(cluster, chips[shape.order[position]], chips[shape.order[to]], cost));
        for (const auto& [link, bandwidth] : routes.back().links) links.insert(link);
      }
      if (!are_alike(routes)) return false;
    }
    for (const LinkId link : links) {
      if (!inside.insert(link).second) return false;
    }
    stride *= dimension.size;
  }
  return true;
}

}  // namespace

FormulaGroup formula_group(const Cluster& cluster, std::span<const std::uint32_t> chips,
                           const GroupShape& shape, const LibraryCost& cost, LinkSharing sharing) {
  const auto chip = [&](std::uint32_t position) { return chips[shape.order[position]]; };
  FormulaGroup group;
  std::vector<LinkId> ports;       // by level: the port of the first member
  std::map<LinkId, double> loads;  // seconds per byte
  std::uint32_t stride = 1;
  for (const GroupDimension& dimension : shape.dimensions) {
    FormulaLevel level{.size = dimension.size,
                       .torus_axis = dimension.torus_axis,
                       .wraps = dimension.wraps,
                       .twists = dimension.twists};
    // Finds the bandwidth left for each pair of neighbours when all members send to the next one at
    // once, or one after the other. Except on a torus, the last one also sends to the first.
    loads.clear();
    std::vector<Route> routes;
    for (std::uint32_t position = 0; position < shape.members(); ++position) {
      const bool last = position / stride % dimension.size + 1 == dimension.size;
      if (last && (dimension.torus_axis || dimension.size == 2)) continue;
      const std::uint32_t next =
          last ? position - (dimension.size - 1) * stride : position + stride;
      const Route& route =
          routes.emplace_back(route_between(cluster, chip(position), chip(next), cost));
      level.trip = std::max(level.trip, last ? Duration{} : route.trip);
      for (const auto& [link, bandwidth] : route.links) {
        double& load = loads[link];
        load = (sharing == LinkSharing::kShared ? load : 0) + 1 / bandwidth.value();
        level.bandwidth = level.bandwidth.value() == 0
                              ? Bandwidth(1 / load)
                              : std::min(level.bandwidth, Bandwidth(1 / load));
      }
    }
    ports.push_back(routes.front().links.front().first);
    const auto same = std::ranges::find(ports, ports.back());
    if (same + 1 != ports.end()) level.port = static_cast<std::uint32_t>(same - ports.begin());
    group.levels.push_back(level);
    stride *= dimension.size;
  }
  // The first and the last position differ on every level. On a torus they may be neighbours, so
  // there the trips are those of the axes.
  if (!shape.dimensions.front().torus_axis) {
    group.farthest = route_between(cluster, chip(0), chip(shape.members() - 1), cost).trip;
  }
  return group;
}

CollectiveFormula stated_form(const Cluster& cluster, std::span<const std::uint32_t> chips,
                              const GroupShape& shape, const StatedCollective& stated) {
  CollectiveTask task = stated.task;
  task.in_one_piece = stated.overlapped;
  const auto algorithm = choose_algorithm(task, stated.algorithm, shape);
  FormulaGroup group = formula_group(cluster, chips, shape, stated.cost);
  std::uint32_t position = 0;
  while (shape.order[position] != stated.task.root) ++position;
  for (std::size_t level = 0; level < group.levels.size(); ++level) {
    group.levels[level].root = position % group.levels[level].size;
    position /= group.levels[level].size;
  }
  CollectiveFormulaInput input{.op = stated.task.op,
                               .algorithm = stated.algorithm,
                               .bytes = stated.task.bytes,
                               .levels = group.levels,
                               .farthest = group.farthest,
                               .busiest_ports = {},
                               .rounds = algorithm->rounds(),
                               .lanes = algorithm->lanes(),
                               .rail_trees = shape.tree.nodes.empty() && !shape.rail_trees.empty(),
                               .one_switch = shape.tree.nodes.size() == shape.members() + 1,
                               .node_trees = !shape.node_trees.empty()};
  if (stated.algorithm == AlgorithmChoice::kPackedTrees) {
    input.ports = least_ports(shape.ways, shape.members());
    for (const MemberWays::Way& way : shape.ways.ways) {
      const Route route = route_between(cluster, chips[way.from], chips[way.to], stated.cost);
      input.way = std::max(input.way, route.trip);
    }
    const HopKind kind = kind_between(cluster, chips.front(), chips.back());
    input.ports = input.ports / stated.cost.wire[static_cast<std::size_t>(kind)];
  }
  if (stated.task.matrix != nullptr) {
    input.busiest_ports = busiest_ports(*stated.task.matrix, shape);
  }
  const auto counted = counted_form(cluster, chips, *algorithm, stated.cost, kMostSlots);
  const auto pipelined = collective_formula(input);
  const auto agrees = [](const std::optional<CollectiveFormula>& form, double seconds) {
    return form && std::abs(form->seconds - seconds) <= kAgreement * seconds;
  };
  if (counted && !stated.overlapped) {
    input.overlapped = false;
    const auto stepped = collective_formula(input);
    const bool known = counted->stepped_exact && agrees(stepped, counted->stepped);
    if (known && stepped->exact) return *stepped;
    const bool holds = agrees(pipelined, counted->pipelined) && stepped &&
                       stepped->seconds >= (1 - kAgreement) * counted->stepped;
    if (!counted->stepped_exact && holds && is_even(cluster, chips, shape, stated.cost)) {
      return *stepped;
    }
    return {.seconds = counted->stepped,
            .text = stepped_text(pipelined, *counted),
            .exact = counted->stepped_exact};
  }
  if (pipelined && (!counted || agrees(pipelined, counted->pipelined))) {
    input.overlapped = stated.overlapped;
    if (auto form = collective_formula(input)) return *form;
  }
  if (!counted) return {.seconds = 0, .text = "too many messages to count", .exact = false};
  return {.seconds = counted->pipelined, .text = counted_text(pipelined, true)};
}

}  // namespace stepsim
