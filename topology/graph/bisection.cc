#include "topology/graph/bisection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "topology/graph/graph_measures.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostVisits = 40'000'000;  // of edges, to look for halvings
constexpr std::size_t kNeighbours = 16;          // of a node that are tried
constexpr std::size_t kImproved = 6;             // halvings that are improved
constexpr std::size_t kMeasured = 3;             // halvings whose flow is found
constexpr std::size_t kMostPasses = 20;

// The fabric with links in both directions as one edge, whose weight is the sum of both.
struct CutGraph {
  struct Edge {
    std::uint32_t to;
    std::int64_t weight;
  };
  std::vector<std::uint32_t> first;  // by node: of its edges
  std::vector<Edge> edges;
  std::vector<std::uint32_t> chips;  // in order
  std::vector<bool> is_chip;         // by node

  std::size_t nodes() const { return is_chip.size(); }
  std::span<const Edge> of(std::uint32_t node) const {
    return {edges.data() + first[node], edges.data() + first[node + 1]};
  }
};

CutGraph cut_graph(const Fabric& fabric) {
  CutGraph graph;
  const std::size_t nodes = fabric.nodes().size();
  graph.is_chip.resize(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    graph.is_chip[node] = fabric.node(NodeId(node)).kind == NodeKind::kChip;
    if (graph.is_chip[node]) graph.chips.push_back(node);
  }
  std::vector<std::pair<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>> links;
  for (const Link& link : fabric.links()) {
    const std::int64_t weight = std::llround(link.bandwidth.value());
    links.push_back({{link.from.index(), link.to.index()}, weight});
    links.push_back({{link.to.index(), link.from.index()}, weight});
  }
  std::ranges::sort(links);
  graph.first.resize(nodes + 1);
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (i > 0 && links[i].first == links[i - 1].first) {
      graph.edges.back().weight += links[i].second;
      continue;
    }
    graph.edges.push_back({links[i].first.second, links[i].second});
    ++graph.first[links[i].first.first + 1];
  }
  std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
  return graph;
}

std::vector<std::int32_t> hops_in(const CutGraph& graph, std::uint32_t from) {
  std::vector<std::int32_t> hops(graph.nodes(), -1);
  std::vector<std::uint32_t> queue{from};
  hops[from] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (const CutGraph::Edge& edge : graph.of(queue[next])) {
      if (hops[edge.to] >= 0) continue;
      hops[edge.to] = hops[queue[next]] + 1;
      queue.push_back(edge.to);
    }
  }
  return hops;
}

// A halving: the side of each node, and what crosses between the sides.
struct Halving {
  std::vector<std::uint8_t> side;
  std::int64_t cut = 0;
};

std::int64_t cut_of(const CutGraph& graph, const std::vector<std::uint8_t>& side) {
  std::int64_t cut = 0;
  for (std::uint32_t node = 0; node < graph.nodes(); ++node) {
    if (side[node] != 0) continue;
    for (const CutGraph::Edge& edge : graph.of(node)) {
      if (side[edge.to] != 0) cut += edge.weight;
    }
  }
  return cut;
}

// The half of the chips with the lowest scores against the others; chips of equal score go by their
// number, switches where most of the bandwidth of their neighbours is.
Halving halve(const CutGraph& graph, const std::vector<std::int32_t>& score) {
  std::vector<std::uint32_t> order = graph.chips;
  std::ranges::stable_sort(order, {}, [&](std::uint32_t chip) { return score[chip]; });
  Halving halving{.side = std::vector<std::uint8_t>(graph.nodes(), 1)};
  const std::size_t half = order.size() / 2;
  for (std::size_t i = 0; i < half; ++i) halving.side[order[i]] = 0;
  const std::int32_t middle = score[order[half]];
  for (std::uint32_t node = 0; node < graph.nodes(); ++node) {
    if (graph.is_chip[node]) continue;
    halving.side[node] = score[node] < middle ? 0 : 1;
    if (score[node] != middle) continue;
    std::int64_t lean = 0;
    for (const CutGraph::Edge& edge : graph.of(node)) {
      lean += halving.side[edge.to] == 0 ? -edge.weight : edge.weight;
    }
    halving.side[node] = lean < 0 ? 0 : 1;
  }
  halving.cut = cut_of(graph, halving.side);
  return halving;
}

// One pass of moves: each chip goes to the other side once, the one that helps most first, chips of
// both sides by turns. Keeps the moves up to the least cut.
class MovePass {
 public:
  MovePass(const CutGraph& graph, Halving& halving)
      : graph_(graph), halving_(halving), gain_(graph.nodes()), locked_(graph.nodes(), false) {
    for (std::uint32_t node = 0; node < graph.nodes(); ++node) {
      for (const CutGraph::Edge& edge : graph.of(node)) gain_[node] += gain_of(node, edge);
      waiting_of(node).insert({-gain_[node], node});
    }
  }

  // Returns whether the cut is less than before.
  bool run() {
    const std::int64_t before = halving_.cut;
    std::int64_t least = before;
    std::size_t kept = 0;
    move_switches();
    if (halving_.cut < least) keep(least, kept);
    const std::size_t patience = std::max<std::size_t>(64, graph_.chips.size() / 8);
    std::size_t since = 0;
    while (!chips_[0].empty() && !chips_[1].empty() && since++ < patience) {
      move(chips_[0].begin()->second);
      move_switches();
      move(chips_[1].begin()->second);
      move_switches();
      if (halving_.cut >= least) continue;
      keep(least, kept);
      since = 0;
    }
    while (moved_.size() > kept) {
      halving_.side[moved_.back()] ^= 1;
      moved_.pop_back();
    }
    halving_.cut = least;
    return least < before;
  }

 private:
  using Waiting = std::set<std::pair<std::int64_t, std::uint32_t>>;

  std::int64_t gain_of(std::uint32_t node, const CutGraph::Edge& edge) const {
    return halving_.side[node] == halving_.side[edge.to] ? -edge.weight : edge.weight;
  }
  Waiting& waiting_of(std::uint32_t node) {
    return graph_.is_chip[node] ? chips_[halving_.side[node]] : switches_;
  }
  void keep(std::int64_t& least, std::size_t& kept) const {
    least = halving_.cut;
    kept = moved_.size();
  }

  void move(std::uint32_t node) {
    waiting_of(node).erase({-gain_[node], node});
    locked_[node] = true;
    halving_.cut -= gain_[node];
    halving_.side[node] ^= 1;
    moved_.push_back(node);
    for (const CutGraph::Edge& edge : graph_.of(node)) {
      const std::uint32_t other = edge.to;
      if (locked_[other]) continue;
      waiting_of(other).erase({-gain_[other], other});
      gain_[other] += 2 * gain_of(other, {node, edge.weight});
      waiting_of(other).insert({-gain_[other], other});
    }
  }

  void move_switches() {
    while (!switches_.empty() && switches_.begin()->first < 0) move(switches_.begin()->second);
  }

  const CutGraph& graph_;
  Halving& halving_;
  std::vector<std::int64_t> gain_;  // by node: by how much the cut is less once it has moved
  std::vector<bool> locked_;
  std::array<Waiting, 2> chips_;  // by side; -gain first
  Waiting switches_;
  std::vector<std::uint32_t> moved_;
};

// Keeps the halvings with the least cuts, one of each cut.
void keep_best(std::vector<Halving>& best, Halving halving, std::size_t most) {
  const auto at = std::ranges::lower_bound(best, halving.cut, {}, &Halving::cut);
  if (at != best.end() && at->cut == halving.cut) return;
  best.insert(at, std::move(halving));
  if (best.size() > most) best.pop_back();
}

std::vector<Halving> likely_halvings(const CutGraph& graph) {
  std::vector<Halving> best;
  std::size_t visits = 0;
  const auto try_pair = [&](const std::vector<std::int32_t>& near, std::uint32_t far) {
    std::vector<std::int32_t> score = hops_in(graph, far);
    for (std::size_t node = 0; node < score.size(); ++node) score[node] = near[node] - score[node];
    keep_best(best, halve(graph, score), kImproved);
    visits += 3 * graph.edges.size() + 8 * graph.nodes();
  };
  // Spread over all nodes, so that the first few of a large graph are from all over it.
  const std::size_t nodes = graph.nodes();
  std::size_t stride = static_cast<std::size_t>(0.618 * static_cast<double>(nodes)) | 1U;
  while (std::gcd(stride, nodes) != 1) stride += 2;
  for (std::size_t i = 0; i < nodes && visits < kMostVisits; ++i) {
    const auto node = static_cast<std::uint32_t>(i * stride % nodes);
    const std::vector<std::int32_t> hops = hops_in(graph, node);
    const auto far = std::ranges::max_element(hops) - hops.begin();
    try_pair(hops, static_cast<std::uint32_t>(far));
    std::size_t tried = 0;
    for (const CutGraph::Edge& edge : graph.of(node)) {
      if (tried++ == kNeighbours) break;
      try_pair(hops, edge.to);
    }
  }
  return best;
}

}  // namespace

Bandwidth bisection_bandwidth(const Fabric& fabric) {
  const CutGraph graph = cut_graph(fabric);
  if (graph.chips.size() < 2) return Bandwidth(0);
  std::vector<std::int32_t> order(graph.nodes());
  std::iota(order.begin(), order.end(), 0);
  std::vector<Halving> halvings = likely_halvings(graph);
  halvings.push_back(halve(graph, order));
  std::vector<Halving> best;
  for (Halving& halving : halvings) {
    for (std::size_t pass = 0; pass < kMostPasses; ++pass) {
      if (!MovePass(graph, halving).run()) break;
    }
    keep_best(best, std::move(halving), kMeasured);
  }
  std::optional<Bandwidth> least;
  for (const Halving& halving : best) {
    std::array<std::vector<NodeId>, 2> halves;
    for (const std::uint32_t chip : graph.chips) {
      halves[halving.side[chip]].push_back(NodeId(chip));
    }
    const Bandwidth across = std::min(flow_between(fabric, halves[0], halves[1]),
                                      flow_between(fabric, halves[1], halves[0]));
    least = std::min(least.value_or(across), across);
  }
  return *least;
}

}  // namespace stepsim
