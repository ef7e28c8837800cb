#include "topology/graph/graph_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/graph/strong_components.hpp>
#include <cmath>
#include <cstddef>
#include <utility>

namespace stepsim {
namespace {

using HopGraph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, std::uint32_t, std::uint32_t>;

HopGraph hop_graph(const Fabric& fabric) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  edges.reserve(fabric.links().size());
  for (const Link& link : fabric.links()) {
    edges.emplace_back(link.from.index(), link.to.index());
  }
  return HopGraph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
                  static_cast<std::uint32_t>(fabric.nodes().size()));
}

using Hops = std::vector<std::optional<std::uint32_t>>;

class HopCounter : public boost::default_bfs_visitor {
 public:
  explicit HopCounter(Hops& hops) : hops_(hops) {}
  void tree_edge(HopGraph::edge_descriptor edge, const HopGraph& graph) {
    hops_[boost::target(edge, graph)] = *hops_[boost::source(edge, graph)] + 1;
  }

 private:
  Hops& hops_;
};

Hops hops_in(const HopGraph& graph, std::uint32_t from) {
  Hops hops(boost::num_vertices(graph));
  hops[from] = 0;
  boost::breadth_first_search(graph, from, boost::visitor(HopCounter(hops)));
  return hops;
}

std::vector<NodeId> chips_of(const Fabric& fabric) {
  std::vector<NodeId> chips;
  for (std::uint32_t node = 0; node < fabric.nodes().size(); ++node) {
    if (fabric.node(NodeId(node)).kind == NodeKind::kChip) chips.emplace_back(node);
  }
  return chips;
}

using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;

struct FlowEdge {
  std::int64_t capacity = 0;
  std::int64_t residual = 0;
  FlowTraits::edge_descriptor reverse{};
};

using FlowGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, FlowEdge>;

void add_flow_edge(FlowGraph& graph, std::size_t from, std::size_t to, std::int64_t capacity) {
  const auto forth = boost::add_edge(from, to, FlowEdge{.capacity = capacity}, graph).first;
  const auto back = boost::add_edge(to, from, FlowEdge{}, graph).first;
  graph[forth].reverse = back;
  graph[back].reverse = forth;
}

std::int64_t whole_bytes_per_second(Bandwidth bandwidth) {
  return std::llround(bandwidth.value());
}

// Components numbers sets of nodes that reach each other both ways.
struct Components {
  std::vector<std::uint32_t> of_node;
  std::uint32_t count = 0;
};

Components components_of(const Fabric& fabric) {
  const HopGraph graph = hop_graph(fabric);
  Components components{std::vector<std::uint32_t>(fabric.nodes().size())};
  const auto index = boost::get(boost::vertex_index, graph);
  components.count = boost::strong_components(
      graph, boost::make_iterator_property_map(components.of_node.begin(), index));
  return components;
}

// Hops are counted from several chips together, with one bit for each of them.
constexpr std::size_t kWords = 8;
constexpr std::size_t kTogether = 64 * kWords;
using Bits = std::array<std::uint64_t, kWords>;

// Returns the hops from the furthest of up to kTogether chips to any chip; nullopt if one cannot be
// reached. All searches step together: a node is reached by every search that reached one of its
// neighbours.
std::optional<std::uint32_t> furthest(const Fabric& fabric, const std::vector<NodeId>& chips,
                                      std::size_t first, std::size_t count) {
  const std::size_t nodes = fabric.nodes().size();
  std::vector<Bits> seen(nodes, Bits{});
  for (std::size_t i = 0; i < count; ++i) {
    seen[chips[first + i].index()][i / 64] |= std::uint64_t{1} << (i % 64);
  }
  std::vector<Bits> reached = seen;  // reached by the last step
  std::vector<Bits> next(nodes);
  std::uint32_t hops = 0;
  for (std::uint32_t step = 1;; ++step) {
    std::ranges::fill(next, Bits{});
    for (const Link& link : fabric.links()) {
      const Bits& from = reached[link.from.index()];
      Bits& to = next[link.to.index()];
      for (std::size_t word = 0; word < kWords; ++word) to[word] |= from[word];
    }
    bool found_any = false;
    for (std::size_t node = 0; node < nodes; ++node) {
      std::uint64_t found = 0;
      for (std::size_t word = 0; word < kWords; ++word) {
        next[node][word] &= ~seen[node][word];
        seen[node][word] |= next[node][word];
        found |= next[node][word];
      }
      if (found == 0) continue;
      found_any = true;
      if (fabric.nodes()[node].kind == NodeKind::kChip) hops = step;
    }
    if (!found_any) break;
    std::swap(reached, next);
  }
  Bits all{};
  for (std::size_t i = 0; i < count; ++i) all[i / 64] |= std::uint64_t{1} << (i % 64);
  for (const NodeId chip : chips) {
    if (seen[chip.index()] != all) return std::nullopt;
  }
  return hops;
}

}  // namespace

bool connected(const Fabric& fabric) {
  return components_of(fabric).count <= 1;
}

std::vector<NodeId> chips_cut_off(const Fabric& fabric) {
  const Components components = components_of(fabric);
  const std::vector<NodeId> chips = chips_of(fabric);
  std::vector<std::size_t> sizes(components.count, 0);
  for (const NodeId chip : chips) ++sizes[components.of_node[chip.index()]];
  // Takes the first chip of a largest component, so that the answer does not depend on component
  // numbers.
  const auto size_around = [&](NodeId chip) { return sizes[components.of_node[chip.index()]]; };
  const auto main = std::ranges::max_element(chips, {}, size_around);
  std::vector<NodeId> lost;
  for (const NodeId chip : chips) {
    if (components.of_node[chip.index()] != components.of_node[main->index()]) lost.push_back(chip);
  }
  return lost;
}

std::string cut_off_text(const Fabric& fabric, const std::vector<NodeId>& chips) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(chips.size(), kNamed); ++i) {
    text += (i == 0 ? "" : ", ") + fabric.node(chips[i]).name;
  }
  if (chips.size() > kNamed) text += fmt::format(" and {} more", chips.size() - kNamed);
  return text + (chips.size() == 1 ? " is cut off" : " are cut off");
}

std::vector<std::optional<std::uint32_t>> hops_from(const Fabric& fabric, NodeId from) {
  return hops_in(hop_graph(fabric), from.index());
}

std::optional<std::uint32_t> diameter_in_hops(const Fabric& fabric) {
  const std::vector<NodeId> chips = chips_of(fabric);
  std::uint32_t diameter = 0;
  for (std::size_t first = 0; first < chips.size(); first += kTogether) {
    const std::size_t count = std::min(kTogether, chips.size() - first);
    const auto hops = furthest(fabric, chips, first, count);
    if (!hops) return std::nullopt;
    diameter = std::max(diameter, *hops);
  }
  return diameter;
}

Bandwidth flow_between(const Fabric& fabric, const std::vector<NodeId>& from,
                       const std::vector<NodeId>& to, const std::vector<bool>* usable) {
  if (from.empty() || to.empty()) return Bandwidth(0);
  const std::size_t source = fabric.nodes().size();
  const std::size_t sink = source + 1;
  FlowGraph graph(sink + 1);
  std::vector<std::int64_t> sent(fabric.nodes().size());
  std::vector<std::int64_t> received(fabric.nodes().size());
  for (std::size_t id = 0; id < fabric.links().size(); ++id) {
    if (usable != nullptr && !(*usable)[id]) continue;
    const Link& link = fabric.links()[id];
    const std::int64_t capacity = whole_bytes_per_second(link.bandwidth);
    add_flow_edge(graph, link.from.index(), link.to.index(), capacity);
    sent[link.from.index()] += capacity;
    received[link.to.index()] += capacity;
  }
  for (const NodeId node : from) add_flow_edge(graph, source, node.index(), sent[node.index()]);
  for (const NodeId node : to) add_flow_edge(graph, node.index(), sink, received[node.index()]);
  const std::int64_t flow = boost::push_relabel_max_flow(
      graph, source, sink, boost::get(&FlowEdge::capacity, graph),
      boost::get(&FlowEdge::residual, graph), boost::get(&FlowEdge::reverse, graph),
      boost::get(boost::vertex_index, graph));
  return Bandwidth(static_cast<double>(flow));
}

}  // namespace stepsim
