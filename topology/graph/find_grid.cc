#include "topology/graph/find_grid.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "sim/collectives/algorithm.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostAxes = kMaxDimensions;

using Neighbours = std::vector<std::vector<std::uint32_t>>;  // by chip, sorted

// A cable between chips a < b.
struct GridEdge {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  LinkId forth;  // a to b
  LinkId back;
};

bool has(const std::vector<std::uint32_t>& sorted, std::uint32_t value) {
  return std::ranges::binary_search(sorted, value);
}

class ChipGraph {
 public:
  // Returns nullopt if there are other nodes than chips, or links that are no cables.
  static std::optional<ChipGraph> of(const Fabric& fabric) {
    ChipGraph graph;
    const std::size_t chips = fabric.nodes().size();
    graph.neighbours.resize(chips);
    std::map<std::pair<std::uint32_t, std::uint32_t>, LinkId> links;
    for (const Node& node : fabric.nodes()) {
      if (node.kind != NodeKind::kChip) return std::nullopt;
    }
    for (std::uint32_t id = 0; id < fabric.links().size(); ++id) {
      const Link& link = fabric.link(LinkId(id));
      if (!links.insert({{link.from.index(), link.to.index()}, LinkId(id)}).second) {
        return std::nullopt;
      }
    }
    for (const auto& [ends, id] : links) {
      const auto back = links.find({ends.second, ends.first});
      if (back == links.end()) return std::nullopt;
      const Link& there = fabric.link(id);
      const Link& here = fabric.link(back->second);
      if (there.bandwidth != here.bandwidth || there.latency != here.latency) return std::nullopt;
      graph.neighbours[ends.first].push_back(ends.second);
      if (ends.first > ends.second) continue;
      graph.numbers[ends] = static_cast<std::uint32_t>(graph.edges.size());
      graph.edges.push_back({ends.first, ends.second, id, back->second});
    }
    return graph;
  }

  std::uint32_t edge(std::uint32_t one, std::uint32_t other) const {
    return numbers.at(std::minmax({one, other}));
  }
  // The link from one chip to its neighbour.
  LinkId link(std::uint32_t from, std::uint32_t to) const {
    const GridEdge& cable = edges[edge(from, to)];
    return from < to ? cable.forth : cable.back;
  }

  Neighbours neighbours;
  std::vector<GridEdge> edges;

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;  // of edges
};

class Classes {
 public:
  explicit Classes(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }
  std::uint32_t of(std::uint32_t item) {
    while (parent_[item] != item) item = parent_[item] = parent_[parent_[item]];
    return item;
  }
  void join(std::uint32_t one, std::uint32_t other) {
    const auto [low, high] = std::minmax({of(one), of(other)});
    parent_[high] = low;
  }

 private:
  std::vector<std::uint32_t> parent_;
};

// Returns the number of the factor of each edge, from 0 on; the factors may be too small, which the
// caller finds out.
std::vector<std::uint32_t> factors_of(const ChipGraph& graph) {
  Classes classes(graph.edges.size());
  for (std::uint32_t chip = 0; chip < graph.neighbours.size(); ++chip) {
    const std::vector<std::uint32_t>& around = graph.neighbours[chip];
    for (std::size_t i = 0; i < around.size(); ++i) {
      for (std::size_t j = i + 1; j < around.size(); ++j) {
        const std::uint32_t v = around[i];
        const std::uint32_t w = around[j];
        const std::uint32_t one = graph.edge(chip, v);
        const std::uint32_t other = graph.edge(chip, w);
        std::vector<std::uint32_t> corners;
        for (const std::uint32_t far : graph.neighbours[v]) {
          if (far != chip && has(graph.neighbours[far], w)) corners.push_back(far);
        }
        const bool is_square = corners.size() == 1 && !has(graph.neighbours[v], w) &&
                               !has(graph.neighbours[corners[0]], chip);
        if (!is_square) {
          classes.join(one, other);
        } else {
          classes.join(one, graph.edge(w, corners[0]));
          classes.join(other, graph.edge(v, corners[0]));
        }
      }
    }
  }
  std::map<std::uint32_t, std::uint32_t> numbers;
  std::vector<std::uint32_t> factors;
  for (std::uint32_t edge = 0; edge < graph.edges.size(); ++edge) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    factors.push_back(numbers.try_emplace(classes.of(edge), next).first->second);
  }
  return factors;
}

// Coordinate of each chip on one factor, and how many there are: chips that are joined by edges of
// other factors alone have the same.
struct Coordinates {
  std::vector<std::uint32_t> of_chip;
  std::uint32_t size = 0;
};

Coordinates coordinates_on(const ChipGraph& graph, const std::vector<std::uint32_t>& factors,
                           std::uint32_t factor) {
  const std::size_t chips = graph.neighbours.size();
  Classes classes(chips);
  for (std::size_t edge = 0; edge < graph.edges.size(); ++edge) {
    if (factors[edge] != factor) classes.join(graph.edges[edge].a, graph.edges[edge].b);
  }
  Coordinates found;
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (std::uint32_t chip = 0; chip < chips; ++chip) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    found.of_chip.push_back(numbers.try_emplace(classes.of(chip), next).first->second);
  }
  found.size = static_cast<std::uint32_t>(numbers.size());
  return found;
}

// Renumbers the coordinates along the line or ring that the factor's edges join them to. Returns
// false if it is neither. Coordinates are numbered in the order of their lowest chips: chip 0 has
// 0, and its neighbour of the lowest number is on the side where a ring goes on.
bool put_in_line(const ChipGraph& graph, const std::vector<std::uint32_t>& factors,
                 std::uint32_t factor, Coordinates& along) {
  Neighbours next(along.size);
  for (std::size_t edge = 0; edge < graph.edges.size(); ++edge) {
    if (factors[edge] != factor) continue;
    const std::uint32_t one = along.of_chip[graph.edges[edge].a];
    const std::uint32_t other = along.of_chip[graph.edges[edge].b];
    if (std::ranges::find(next[one], other) == next[one].end()) next[one].push_back(other);
    if (std::ranges::find(next[other], one) == next[other].end()) next[other].push_back(one);
  }
  for (std::vector<std::uint32_t>& each : next) std::ranges::sort(each);
  std::uint32_t start = 0;
  for (std::uint32_t at = along.size; at-- > 0;) {
    if (next[at].empty() || next[at].size() > 2) return false;
    if (next[at].size() == 1) start = at;  // the end of a line with the lower number
  }
  std::vector<std::uint32_t> place(along.size, along.size);
  std::uint32_t at = start;
  for (std::uint32_t number = 0; number < along.size; ++number) {
    place[at] = number;
    const auto on = std::ranges::find_if(
        next[at], [&](std::uint32_t each) { return place[each] == along.size; });
    if (on == next[at].end() && number + 1 < along.size) return false;
    if (on != next[at].end()) at = *on;
  }
  for (std::uint32_t& coordinate : along.of_chip) coordinate = place[coordinate];
  return true;
}

// Puts two lines of two together to the ring of four that they span.
Coordinates ring_of_four(const Coordinates& one, const Coordinates& other) {
  Coordinates ring{.of_chip = {}, .size = 4};
  for (std::size_t chip = 0; chip < one.of_chip.size(); ++chip) {
    const std::uint32_t second = other.of_chip[chip];
    ring.of_chip.push_back(2 * second + (second == 0 ? one.of_chip[chip] : 1 - one.of_chip[chip]));
  }
  return ring;
}

// Returns the grid of these places, if its cables are those of the graph.
std::optional<ChipGrid> grid_at(const ChipGraph& graph, const std::vector<std::uint32_t>& sizes,
                                std::vector<std::uint32_t> place) {
  ChipGrid grid{.axes = {}, .place = std::move(place), .cables = {}};
  const std::size_t chips = graph.neighbours.size();
  std::vector<std::uint32_t> chip_at(chips, 0);
  for (std::uint32_t chip = 0; chip < chips; ++chip) chip_at[grid.place[chip]] = chip;
  grid.cables.resize(chips * sizes.size());
  std::size_t cables = 0;
  std::uint32_t stride = 1;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const std::uint32_t size = sizes[axis];
    const bool wraps =
        size > 2 && has(graph.neighbours[chip_at[0]], chip_at[std::size_t{size - 1} * stride]);
    for (std::uint32_t at = 0; at < chips; ++at) {
      if (!wraps && at / stride % size + 1 == size) continue;
      const std::uint32_t here = chip_at[at];
      const std::uint32_t there = chip_at[next_place(at, size, stride)];
      if (!has(graph.neighbours[here], there)) return std::nullopt;
      grid.cables[at * sizes.size() + axis] = {.plus = graph.link(here, there),
                                               .minus = graph.link(there, here)};
      ++cables;
    }
    grid.axes.push_back({.size = size, .wraps = wraps});
    stride *= size;
  }
  if (cables != graph.edges.size()) return std::nullopt;
  return grid;
}

// Returns the grid of these sizes whose chips are numbered along its axes.
std::optional<ChipGrid> numbered_along(const ChipGraph& graph,
                                       const std::vector<std::uint32_t>& sizes) {
  std::vector<std::uint32_t> place(graph.neighbours.size());
  std::iota(place.begin(), place.end(), 0U);
  return grid_at(graph, sizes, std::move(place));
}

// Returns whether the axes are the same in another order.
bool are_alike(const std::vector<GridAxis>& one, const std::vector<GridAxis>& other) {
  return std::ranges::is_permutation(one, other, [](const GridAxis& a, const GridAxis& b) {
    return a.size == b.size && a.wraps == b.wraps;
  });
}

// Returns what the links of a factor are like; bandwidth 0 if they differ.
std::pair<double, std::int64_t> links_of(const ChipGraph& graph, const Fabric& fabric,
                                         const std::vector<std::uint32_t>& factors,
                                         std::uint32_t factor) {
  std::optional<std::pair<double, std::int64_t>> all;
  for (std::size_t edge = 0; edge < graph.edges.size(); ++edge) {
    if (factors[edge] != factor) continue;
    const Link& link = fabric.link(graph.edges[edge].forth);
    const std::pair like{link.bandwidth.value(), link.latency.count()};
    if (all.value_or(like) != like) return {0, 0};
    all = like;
  }
  return all.value_or(std::pair{0.0, std::int64_t{0}});
}

// Returns the factors' coordinates, pairs of lines of two put together; empty if the graph is no
// product of lines and rings.
std::vector<Coordinates> axes_of(const ChipGraph& graph, const Fabric& fabric) {
  const std::vector<std::uint32_t> factors = factors_of(graph);
  const std::uint32_t count = *std::ranges::max_element(factors) + 1;
  if (count > 2 * kMostAxes) return {};
  std::vector<Coordinates> axes;
  std::map<std::pair<double, std::int64_t>, Coordinates> pairs;  // lines of two, by their links
  std::size_t places = 1;
  for (std::uint32_t factor = 0; factor < count; ++factor) {
    Coordinates along = coordinates_on(graph, factors, factor);
    places *= along.size;
    if (along.size < 2 || places > graph.neighbours.size()) return {};
    if (!put_in_line(graph, factors, factor, along)) return {};
    if (along.size > 2) {
      axes.push_back(std::move(along));
      continue;
    }
    const auto like = links_of(graph, fabric, factors, factor);
    const auto half = pairs.find(like);
    if (half == pairs.end()) {
      pairs.emplace(like, std::move(along));
    } else {
      axes.push_back(ring_of_four(half->second, along));
      pairs.erase(half);
    }
  }
  for (auto& [like, line] : pairs) axes.push_back(std::move(line));
  if (places != graph.neighbours.size() || axes.size() > kMostAxes) return {};
  return axes;
}

// Sorts axes by the lowest chip that differs from chip 0 on them alone.
void put_in_order(std::vector<Coordinates>& axes) {
  const auto first_neighbour = [&axes](const Coordinates& axis) {
    std::uint32_t chip = 0;
    for (++chip; chip < axis.of_chip.size(); ++chip) {
      const bool on_axis = std::ranges::all_of(axes, [&](const Coordinates& each) {
        return (each.of_chip[chip] == each.of_chip[0]) == (&each != &axis);
      });
      if (on_axis) break;
    }
    return chip;
  };
  std::vector<std::pair<std::uint32_t, std::size_t>> order;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    order.emplace_back(first_neighbour(axes[axis]), axis);
  }
  std::ranges::sort(order);
  std::vector<Coordinates> sorted;
  for (const auto& [chip, axis] : order) sorted.push_back(std::move(axes[axis]));
  axes = std::move(sorted);
}

}  // namespace

bool ChipGrid::in_order() const {
  for (std::uint32_t chip = 0; chip < place.size(); ++chip) {
    if (place[chip] != chip) return false;
  }
  return true;
}

std::optional<ChipGrid> find_grid(const Fabric& fabric) {
  const std::optional<ChipGraph> graph = ChipGraph::of(fabric);
  if (!graph || graph->edges.empty()) return std::nullopt;
  const bool can_be = std::ranges::all_of(graph->neighbours, [](const auto& around) {
    return !around.empty() && around.size() <= 2 * kMostAxes;
  });
  if (!can_be) return std::nullopt;
  std::vector<Coordinates> axes = axes_of(*graph, fabric);
  if (axes.empty()) return std::nullopt;
  put_in_order(axes);
  std::vector<std::uint32_t> sizes;
  std::vector<std::uint32_t> place(graph->neighbours.size(), 0);
  std::vector<bool> taken(place.size(), false);
  std::uint32_t stride = 1;
  for (const Coordinates& axis : axes) {
    for (std::size_t chip = 0; chip < place.size(); ++chip) {
      place[chip] += axis.of_chip[chip] * stride;
    }
    sizes.push_back(axis.size);
    stride *= axis.size;
  }
  for (const std::uint32_t at : place) {
    if (taken[at]) return std::nullopt;
    taken[at] = true;
  }
  std::optional<ChipGrid> grid = grid_at(*graph, sizes, std::move(place));
  if (!grid || grid->in_order()) return grid;
  std::ranges::sort(sizes);
  do {
    std::optional<ChipGrid> other = numbered_along(*graph, sizes);
    if (other && are_alike(other->axes, grid->axes)) return other;
  } while (std::ranges::next_permutation(sizes).found);
  return grid;
}

std::optional<ChipGrid> find_grid(const Fabric& fabric, const std::vector<std::uint32_t>& sizes) {
  const std::optional<ChipGraph> graph = ChipGraph::of(fabric);
  if (!graph) return std::nullopt;
  std::vector<std::uint32_t> axes;
  std::ranges::copy_if(sizes, std::back_inserter(axes),
                       [](std::uint32_t size) { return size > 1; });
  if (axes.size() > kMostAxes) return std::nullopt;
  return numbered_along(*graph, axes);
}

}  // namespace stepsim
