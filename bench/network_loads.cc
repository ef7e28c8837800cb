#include "bench/network_loads.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace stepsim {
namespace {

// Draw makes random flows, one after the other: start, size and the two ends.
class Draw {
 public:
  Draw(const RandomFlows& flows, std::uint32_t nodes)
      : flows_(flows), nodes_(nodes), random_(flows.seed) {}

  void next() {
    do {
      from = node();
      to = node();
    } while (from == to);
    bytes = flows_.bytes > Bytes(0)
                ? flows_.bytes
                : Bytes(static_cast<std::int64_t>(8 * (125'000 + random_() % 7'875'000)));
    start = next_start_;
    if (flows_.mean_gap > Duration::zero()) next_start_ = next_start_ + gap();
  }

  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Bytes bytes;
  Time start;

 private:
  std::uint32_t node() { return static_cast<std::uint32_t>(random_() % nodes_); }

  // std::exponential_distribution differs between standard libraries.
  Duration gap() {
    const double uniform = (static_cast<double>(random_() >> 11) + 1) * 0x1p-53;
    return Duration(
        std::llround(-std::log(uniform) * static_cast<double>(flows_.mean_gap.count())));
  }

  const RandomFlows& flows_;
  std::uint32_t nodes_;
  std::mt19937_64 random_;
  Time next_start_{};
};

void torus_route(std::uint32_t side, std::uint32_t from, std::uint32_t to,
                 std::vector<LinkId>& route) {
  std::uint32_t node = from;
  std::uint32_t stride = 1;
  for (std::uint32_t axis = 0; axis < 3; ++axis, stride *= side) {
    const std::uint32_t goal = to / stride % side;
    const std::uint32_t ahead = (goal + side - node / stride % side) % side;
    const bool is_plus = ahead <= side / 2;
    for (std::uint32_t at = node / stride % side; at != goal; at = node / stride % side) {
      route.emplace_back(node * 6 + axis * 2 + (is_plus ? 0 : 1));
      const std::uint32_t next = (at + (is_plus ? 1 : side - 1)) % side;
      node = node - at * stride + next * stride;
    }
  }
}

// Adds up-links, then down-links, of each host, of each edge switch and of each aggregation switch.
// All three levels have as many links as there are hosts.
Fabric fat_tree_fabric(const FatTree& tree) {
  Fabric fabric;
  const NodeId any = fabric.add(NodeKind::kSwitch, "");
  for (std::uint32_t level = 0; level < 6; ++level) {
    const Bandwidth bandwidth(level >= 4 ? 50e9 / tree.taper : 50e9);
    for (std::uint32_t i = 0; i < tree.hosts(); ++i) {
      fabric.connect_one_way(any, any, bandwidth, Duration::zero());
    }
  }
  return fabric;
}

void fat_tree_route(const FatTree& tree, std::uint32_t from, std::uint32_t to,
                    std::vector<LinkId>& route) {
  const std::uint32_t half = tree.ports / 2;
  const std::uint32_t pod = half * half;
  const auto add = [&](std::uint32_t level, bool is_up, std::uint32_t index) {
    route.emplace_back((2 * level + (is_up ? 0u : 1u)) * tree.hosts() + index);
  };
  const std::uint32_t up_port = to % half;
  const std::uint32_t core_port = to / half % half;
  const auto aggregation = [&](std::uint32_t host) { return host / pod * half + up_port; };
  add(0, true, from);
  if (from / half != to / half) {
    add(1, true, from / half * half + up_port);
    if (from / pod != to / pod) {
      add(2, true, aggregation(from) * half + core_port);
      add(2, false, aggregation(to) * half + core_port);
    }
    add(1, false, to / half * half + up_port);
  }
  add(0, false, to);
}

}  // namespace

Load random_on_torus(const TorusLinks& links, const RandomFlows& flows) {
  Load load;
  const std::uint32_t nodes = links.side * links.side * links.side;
  for (std::uint32_t node = 0; node < nodes; ++node) load.fabric.add(NodeKind::kChip, "");
  for (std::uint32_t node = 0; node < nodes; ++node) {
    std::uint32_t stride = 1;
    for (std::uint32_t axis = 0; axis < 3; ++axis, stride *= links.side) {
      const std::uint32_t at = node / stride % links.side;
      const std::uint32_t base = node - at * stride;
      for (const std::uint32_t step : {1u, links.side - 1}) {
        load.fabric.connect_one_way(NodeId(node), NodeId(base + (at + step) % links.side * stride),
                                    links.bandwidth, links.latency);
      }
    }
  }
  Draw draw(flows, nodes);
  std::vector<LinkId> route;
  for (std::size_t i = 0; i < flows.count; ++i) {
    draw.next();
    route.clear();
    torus_route(links.side, draw.from, draw.to, route);
    load.flows.add(draw.start, draw.bytes, route);
  }
  return load;
}

Load random_on_fat_tree(const FatTree& tree, const RandomFlows& flows) {
  Load load{fat_tree_fabric(tree), {}};
  Draw draw(flows, tree.hosts());
  std::vector<LinkId> route;
  for (std::size_t i = 0; i < flows.count; ++i) {
    draw.next();
    route.clear();
    fat_tree_route(tree, draw.from, draw.to, route);
    load.flows.add(draw.start, draw.bytes, route);
  }
  return load;
}

Load all_to_all_on_fat_tree(const FatTree& tree, Bytes bytes) {
  Load load{fat_tree_fabric(tree), {}};
  const std::size_t flows = std::size_t{tree.hosts()} * (tree.hosts() - 1);
  load.flows.flows.reserve(flows);
  load.flows.route_links.reserve(flows * 6);
  std::vector<LinkId> route;
  for (std::uint32_t from = 0; from < tree.hosts(); ++from) {
    for (std::uint32_t to = 0; to < tree.hosts(); ++to) {
      if (from == to) continue;
      route.clear();
      fat_tree_route(tree, from, to, route);
      load.flows.add(Time{}, bytes, route);
    }
  }
  return load;
}

}  // namespace stepsim
