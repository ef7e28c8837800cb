#include "topology/dgx_superpod.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

constexpr int kMostPorts = 1024;

int divide_rounding_up(int whole, int parts) {
  return (whole - 1) / parts + 1;
}

// Uplink cables of a leaf; a broken number of them takes a whole port.
int uplinks(const DgxSuperPodSpec& spec) {
  return static_cast<int>(std::ceil(spec.nodes_per_scalable_unit / spec.oversubscription));
}

int most_oversubscription(const DgxSuperPodSpec& spec) {
  return std::max(1, spec.nodes_per_scalable_unit);
}

int scalable_units(const DgxSuperPodSpec& spec) {
  return divide_rounding_up(spec.nodes, spec.nodes_per_scalable_unit);
}

int leaves(const DgxSuperPodSpec& spec) {
  return scalable_units(spec) * spec.gpus_per_node;
}

// The fewest spines whose ports take the uplinks of every leaf, spread evenly over them.
// REQUIRES: leaves(spec) <= spec.switch_ports.
int fewest_spines(const DgxSuperPodSpec& spec) {
  int spines = 1;
  while (leaves(spec) * divide_rounding_up(uplinks(spec), spines) > spec.switch_ports) ++spines;
  return spines;
}

// REQUIRES: the spec's own numbers are in range and there are several nodes.
std::vector<Problem> check_ports(const DgxSuperPodSpec& spec) {
  const int ports = spec.switch_ports;
  std::vector<Problem> problems;
  if (spec.gpus_per_node > ports) {
    problems.push_back(
        {"gpus_per_node", fmt::format("must be at most {} with several nodes (a spine of {} ports "
                                      "needs one for the leaf of each GPU of a node), is {}",
                                      ports, ports, spec.gpus_per_node)});
  }
  if (spec.nodes_per_scalable_unit >= ports ||
      spec.nodes_per_scalable_unit + uplinks(spec) > ports) {
    problems.push_back({"nodes_per_scalable_unit",
                        fmt::format("must leave a leaf of {} ports room for its uplinks: at most "
                                    "{} without oversubscription, is {}",
                                    ports, ports / 2, spec.nodes_per_scalable_unit)});
  }
  if (!problems.empty()) return problems;

  const int most_units = ports / spec.gpus_per_node;
  if (scalable_units(spec) > most_units) {
    const int most_nodes = most_units * spec.nodes_per_scalable_unit;
    problems.push_back(
        {"nodes", fmt::format("must be at most {} ({} GPUs): spines of {} ports reach {} leaves, "
                              "and a core tier above them is not modelled; is {}",
                              most_nodes, most_nodes * spec.gpus_per_node, ports,
                              most_units * spec.gpus_per_node, spec.nodes)});
  } else if (spec.spines && (*spec.spines < fewest_spines(spec) || *spec.spines > uplinks(spec))) {
    problems.push_back(
        {"spines", fmt::format("must be {} to {} (ports for all uplinks of {} leaves, and one "
                               "uplink of each leaf for every spine), is {}",
                               fewest_spines(spec), uplinks(spec), leaves(spec), *spec.spines)});
  }
  return problems;
}

class DgxSuperPodRouter : public Router {
 public:
  // Links by chip number, or by leaf number times spines plus spine; each is the upward
  // direction, and the downward one has the next id (Fabric::connect).
  struct Tables {
    std::uint32_t gpus_per_node = 1;
    std::uint32_t nodes_per_scalable_unit = 1;
    std::uint32_t spines = 0;
    CrossRail cross_rail = CrossRail::kPxn;
    std::vector<LinkId> nvlink_up;
    std::vector<LinkId> nic_up;
    std::vector<LinkId> leaf_up;
  };

  explicit DgxSuperPodRouter(Tables tables) : tables_(std::move(tables)) {}

  void route(NodeId from, NodeId to, std::uint64_t /*flow_key*/,
             std::vector<LinkId>& out) const override {
    if (from == to) return;
    const std::uint32_t source = from.index();
    const std::uint32_t destination = to.index();
    if (node_of(source) == node_of(destination)) {
      cross_node(source, destination, out);
    } else if (rail_of(source) == rail_of(destination) || tables_.cross_rail == CrossRail::kSpine) {
      cross_network(source, destination, out);
    } else {
      const std::uint32_t relay = node_of(source) * tables_.gpus_per_node + rail_of(destination);
      cross_node(source, relay, out);
      cross_network(relay, destination, out);
    }
  }

 private:
  static LinkId down(LinkId up) { return LinkId(up.index() + 1); }

  std::uint32_t node_of(std::uint32_t gpu) const { return gpu / tables_.gpus_per_node; }
  std::uint32_t rail_of(std::uint32_t gpu) const { return gpu % tables_.gpus_per_node; }
  std::uint32_t leaf_of(std::uint32_t gpu) const {
    return node_of(gpu) / tables_.nodes_per_scalable_unit * tables_.gpus_per_node + rail_of(gpu);
  }

  void cross_node(std::uint32_t source, std::uint32_t destination, std::vector<LinkId>& out) const {
    out.push_back(tables_.nvlink_up[source]);
    out.push_back(down(tables_.nvlink_up[destination]));
  }

  void cross_network(std::uint32_t source, std::uint32_t destination,
                     std::vector<LinkId>& out) const {
    out.push_back(tables_.nic_up[source]);
    if (leaf_of(source) != leaf_of(destination)) {
      const std::uint32_t spine = node_of(destination) % tables_.spines;
      out.push_back(tables_.leaf_up[leaf_of(source) * tables_.spines + spine]);
      out.push_back(down(tables_.leaf_up[leaf_of(destination) * tables_.spines + spine]));
    }
    out.push_back(down(tables_.nic_up[destination]));
  }

  Tables tables_;
};

// Adds the leaves, the spines and every cable of the network between the nodes.
void add_network(const DgxSuperPodSpec& spec, const std::vector<NodeId>& gpus, Fabric& fabric,
                 DgxSuperPodRouter::Tables& tables) {
  const DgxNetworkSize size = network_size(spec);
  std::vector<NodeId> leaf_switches;
  for (int leaf = 0; leaf < size.leaves; ++leaf) {
    leaf_switches.push_back(fabric.add(
        NodeKind::kSwitch,
        fmt::format("su{}.leaf{}", leaf / spec.gpus_per_node, leaf % spec.gpus_per_node)));
  }
  std::vector<NodeId> spine_switches;
  for (int spine = 0; spine < size.spines; ++spine) {
    spine_switches.push_back(fabric.add(NodeKind::kSwitch, fmt::format("spine{}", spine)));
  }
  const std::size_t rails = tables.gpus_per_node;
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    const std::size_t unit = gpu / rails / tables.nodes_per_scalable_unit;
    tables.nic_up.push_back(fabric.connect(gpus[gpu], leaf_switches[unit * rails + gpu % rails],
                                           spec.nic_bandwidth, spec.network_link_latency));
  }
  for (const NodeId leaf : leaf_switches) {
    for (const NodeId spine : spine_switches) {
      tables.leaf_up.push_back(
          fabric.connect(leaf, spine, size.leaf_spine_bandwidth, spec.network_link_latency));
    }
  }
  tables.spines = static_cast<std::uint32_t>(size.spines);
}

std::vector<Level> levels(const DgxSuperPodSpec& spec) {
  const auto nodes = static_cast<std::uint32_t>(spec.nodes);
  const auto unit = static_cast<std::uint32_t>(spec.nodes_per_scalable_unit);
  std::vector<Level> levels = {
      {.name = "gpu", .size = static_cast<std::uint32_t>(spec.gpus_per_node)}};
  if (nodes > unit && nodes % unit == 0) {
    levels.push_back({.name = "node", .size = unit});
    levels.push_back({.name = "scalable_unit", .size = nodes / unit});
  } else {
    levels.push_back({.name = "node", .size = nodes});
  }
  return levels;
}

}  // namespace

std::vector<Problem> check(const DgxSuperPodSpec& spec) {
  std::vector<Problem> problems;
  const auto within = [&problems](const char* field, int value, int least, int most) {
    if (value < least || value > most) {
      problems.push_back({field, fmt::format("must be {} to {}, is {}", least, most, value)});
    }
  };
  const auto at_least_one = [&problems](const char* field, int value) {
    if (value < 1) problems.push_back({field, fmt::format("must be at least 1, is {}", value)});
  };
  const auto positive = [&problems](const char* field, Bandwidth value) {
    if (!(value > Bandwidth(0) && std::isfinite(value.value()))) {
      problems.push_back({field, "must be positive, is " + to_text(value)});
    }
  };
  const auto not_negative = [&problems](const char* field, Duration value) {
    if (value < Duration(0)) {
      problems.push_back({field, "must not be negative, is " + to_text(value)});
    }
  };
  at_least_one("nodes", spec.nodes);
  within("gpus_per_node", spec.gpus_per_node, 1, kMostPorts);
  at_least_one("nodes_per_scalable_unit", spec.nodes_per_scalable_unit);
  within("switch_ports", spec.switch_ports, 2, kMostPorts);
  if (!(spec.oversubscription >= 1 && spec.oversubscription <= most_oversubscription(spec))) {
    problems.push_back(
        {"oversubscription", fmt::format("must be 1 to {} (one uplink cable of a leaf), is {}",
                                         most_oversubscription(spec), spec.oversubscription)});
  }
  if (spec.spines) at_least_one("spines", *spec.spines);
  if (problems.empty() && spec.nodes > 1) problems = check_ports(spec);
  positive("nvlink_bandwidth", spec.nvlink_bandwidth);
  not_negative("nvlink_latency", spec.nvlink_latency);
  positive("nic_bandwidth", spec.nic_bandwidth);
  not_negative("network_link_latency", spec.network_link_latency);
  return problems;
}

DgxNetworkSize network_size(const DgxSuperPodSpec& spec) {
  if (spec.nodes == 1) return {};
  const int spines = spec.spines.value_or(fewest_spines(spec));
  return {.scalable_units = scalable_units(spec),
          .leaves = leaves(spec),
          .spines = spines,
          .leaf_spine_bandwidth =
              (spec.nodes_per_scalable_unit / spec.oversubscription / spines) * spec.nic_bandwidth};
}

BuiltTopology build(const DgxSuperPodSpec& spec) {
  BuiltTopology built;
  DgxSuperPodRouter::Tables tables;
  tables.gpus_per_node = static_cast<std::uint32_t>(spec.gpus_per_node);
  tables.nodes_per_scalable_unit = static_cast<std::uint32_t>(spec.nodes_per_scalable_unit);
  tables.cross_rail = spec.cross_rail;

  for (int node = 0; node < spec.nodes; ++node) {
    for (int gpu = 0; gpu < spec.gpus_per_node; ++gpu) {
      built.places.chips.push_back(
          built.fabric.add(NodeKind::kChip, fmt::format("node{}.gpu{}", node, gpu)));
    }
  }
  auto next_gpu = built.places.chips.begin();
  for (int node = 0; node < spec.nodes; ++node) {
    const NodeId nvswitch =
        built.fabric.add(NodeKind::kSwitch, fmt::format("node{}.nvswitch", node));
    for (int gpu = 0; gpu < spec.gpus_per_node; ++gpu) {
      tables.nvlink_up.push_back(
          built.fabric.connect(*next_gpu++, nvswitch, spec.nvlink_bandwidth, spec.nvlink_latency));
    }
  }
  if (spec.nodes > 1) add_network(spec, built.places.chips, built.fabric, tables);

  built.places.levels = levels(spec);
  built.router = std::make_unique<DgxSuperPodRouter>(std::move(tables));
  return built;
}

}  // namespace stepsim
