#include "topology/graph_measures.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/graph/strong_components.hpp>
#include <cmath>
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

}  // namespace

bool connected(const Fabric& fabric) {
  const HopGraph graph = hop_graph(fabric);
  std::vector<std::uint32_t> component(fabric.nodes().size());
  const auto index = boost::get(boost::vertex_index, graph);
  return boost::strong_components(graph,
                                  boost::make_iterator_property_map(component.begin(), index)) <= 1;
}

std::vector<std::optional<std::uint32_t>> hops_from(const Fabric& fabric, NodeId from) {
  return hops_in(hop_graph(fabric), from.index());
}

std::optional<std::uint32_t> diameter_in_hops(const Fabric& fabric) {
  const HopGraph graph = hop_graph(fabric);
  const std::vector<NodeId> chips = chips_of(fabric);
  std::uint32_t diameter = 0;
  for (const NodeId from : chips) {
    const auto hops = hops_in(graph, from.index());
    for (const NodeId to : chips) {
      if (!hops[to.index()]) return std::nullopt;
      diameter = std::max(diameter, *hops[to.index()]);
    }
  }
  return diameter;
}

Bandwidth bisection_bandwidth(const Fabric& fabric) {
  const std::vector<NodeId> chips = chips_of(fabric);
  if (chips.size() < 2) return Bandwidth(0);

  const std::size_t source = fabric.nodes().size();
  const std::size_t sink = source + 1;
  FlowGraph graph(sink + 1);
  std::vector<std::int64_t> sent(fabric.nodes().size());
  std::vector<std::int64_t> received(fabric.nodes().size());
  for (const Link& link : fabric.links()) {
    const std::int64_t capacity = whole_bytes_per_second(link.bandwidth);
    add_flow_edge(graph, link.from.index(), link.to.index(), capacity);
    sent[link.from.index()] += capacity;
    received[link.to.index()] += capacity;
  }
  for (std::size_t chip = 0; chip < chips.size(); ++chip) {
    const std::size_t node = chips[chip].index();
    if (chip < chips.size() / 2) {
      add_flow_edge(graph, source, node, sent[node]);
    } else {
      add_flow_edge(graph, node, sink, received[node]);
    }
  }
  const std::int64_t flow = boost::push_relabel_max_flow(
      graph, source, sink, boost::get(&FlowEdge::capacity, graph),
      boost::get(&FlowEdge::residual, graph), boost::get(&FlowEdge::reverse, graph),
      boost::get(boost::vertex_index, graph));
  return Bandwidth(static_cast<double>(flow));
}

}  // namespace stepsim
