#include "topology/graph/clos.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "topology/graph/levels.h"

namespace stepsim {
namespace {

// Ids of upward links. The downward link has the next id.
struct ClosLinks {
  std::vector<LinkId> endpoint_up;
  std::vector<LinkId> leaf_up;   // leaf * spines_per_pod + spine
  std::vector<LinkId> spine_up;  // (pod * spines_per_pod + spine) * cores_per_plane + core
};

class ClosRouter : public Router {
 public:
  ClosRouter(const ClosShape& shape, ClosLinks links) : shape_(shape), links_(std::move(links)) {}

  void route(NodeId from, NodeId to, std::uint64_t flow_key,
             std::vector<LinkId>& out) const override {
    if (from == to) return;
    const Flow flow = {.from = from.index(), .to = to.index(), .key = flow_key};
    const std::uint32_t number = flow.to / shape_.rails;
    const std::uint32_t spines = shape_.spines_per_pod;
    const Way way = way_of(flow);
    out.push_back(links_.endpoint_up[flow.from]);
    if (way.leaf_from != way.leaf_to) {
      const std::uint32_t spine = choose(shape_.routing, flow, number, 0, spines);
      const std::uint32_t core = way.crosses_pods() ? choose(shape_.routing, flow, number / spines,
                                                             1, shape_.cores_per_plane)
                                                    : 0;
      append_middle(way, spine, core, out);
    }
    out.push_back(down(links_.endpoint_up[flow.to]));
  }

  // Chooses as route() does, by the same digits, among the spines and cores that can be reached.
  void route_around(NodeId from, NodeId to, std::uint64_t flow_key, const IsDown& is_down,
                    std::vector<LinkId>& out) const override {
    const Flow flow = {.from = from.index(), .to = to.index(), .key = flow_key};
    const Way way = way_of(flow);
    std::vector<std::uint32_t> spines;
    if (way.leaf_from != way.leaf_to) spines = open_spines(way, is_down);
    if (spines.empty()) {
      route(from, to, flow_key, out);
      return;
    }
    const std::uint32_t number = flow.to / shape_.rails;
    const auto count = static_cast<std::uint32_t>(spines.size());
    const std::uint32_t spine = spines[choose(shape_.routing, flow, number, 0, count)];
    std::uint32_t core = 0;
    if (way.crosses_pods()) {
      const std::vector<std::uint32_t> cores = open_cores(way, spine, is_down);
      core = cores[choose(shape_.routing, flow, number / count, 1,
                          static_cast<std::uint32_t>(cores.size()))];
    }
    out.push_back(links_.endpoint_up[flow.from]);
    append_middle(way, spine, core, out);
    out.push_back(down(links_.endpoint_up[flow.to]));
  }

 private:
  // Way holds the leaves at both ends of a message, numbered over all pods, and their pods.
  struct Way {
    std::uint32_t leaf_from = 0;
    std::uint32_t leaf_to = 0;
    std::uint32_t pod_from = 0;
    std::uint32_t pod_to = 0;

    bool crosses_pods() const { return pod_from != pod_to; }
  };

  static LinkId down(LinkId up) { return LinkId(up.index() + 1); }

  std::uint32_t leaf_of(std::uint32_t endpoint) const {
    const std::uint32_t unit = endpoint / shape_.rails / shape_.endpoints_per_leaf;
    return unit * shape_.rails + endpoint % shape_.rails;
  }

  Way way_of(const Flow& flow) const {
    const std::uint32_t leaf_from = leaf_of(flow.from);
    const std::uint32_t leaf_to = leaf_of(flow.to);
    return {.leaf_from = leaf_from,
            .leaf_to = leaf_to,
            .pod_from = leaf_from / shape_.leaves_per_pod,
            .pod_to = leaf_to / shape_.leaves_per_pod};
  }

  LinkId leaf_up(std::uint32_t leaf, std::uint32_t spine) const {
    return links_.leaf_up[leaf * shape_.spines_per_pod + spine];
  }

  LinkId spine_up(std::uint32_t pod, std::uint32_t spine, std::uint32_t core) const {
    return links_.spine_up[(pod * shape_.spines_per_pod + spine) * shape_.cores_per_plane + core];
  }

  // Returns the spines over which a message gets from leaf to leaf, between pods over some core.
  // O(spines of a pod; between pods also times the cores of a plane).
  std::vector<std::uint32_t> open_spines(const Way& way, const IsDown& is_down) const {
    std::vector<std::uint32_t> spines;
    for (std::uint32_t spine = 0; spine < shape_.spines_per_pod; ++spine) {
      if (is_down(leaf_up(way.leaf_from, spine)) || is_down(down(leaf_up(way.leaf_to, spine)))) {
        continue;
      }
      if (way.crosses_pods() && open_cores(way, spine, is_down).empty()) continue;
      spines.push_back(spine);
    }
    return spines;
  }

  std::vector<std::uint32_t> open_cores(const Way& way, std::uint32_t spine,
                                        const IsDown& is_down) const {
    std::vector<std::uint32_t> cores;
    for (std::uint32_t core = 0; core < shape_.cores_per_plane; ++core) {
      if (is_down(spine_up(way.pod_from, spine, core))) continue;
      if (is_down(down(spine_up(way.pod_to, spine, core)))) continue;
      cores.push_back(core);
    }
    return cores;
  }

  // Appends the links from leaf to leaf. `core` matters between pods only.
  void append_middle(const Way& way, std::uint32_t spine, std::uint32_t core,
                     std::vector<LinkId>& out) const {
    out.push_back(leaf_up(way.leaf_from, spine));
    if (way.crosses_pods()) {
      out.push_back(spine_up(way.pod_from, spine, core));
      out.push_back(down(spine_up(way.pod_to, spine, core)));
    }
    out.push_back(down(leaf_up(way.leaf_to, spine)));
  }

  ClosShape shape_;
  ClosLinks links_;
};

bool has_pod_names(const ClosShape& shape) {
  return shape.pods > 1 || shape.names_pods;
}

std::string leaf_name(const ClosShape& shape, std::uint32_t leaf) {
  if (shape.is_rail_optimised) {
    return fmt::format("su{}.leaf{}", leaf / shape.rails, leaf % shape.rails);
  }
  if (!has_pod_names(shape)) return fmt::format("leaf{}", leaf);
  return fmt::format("pod{}.leaf{}", leaf / shape.leaves_per_pod, leaf % shape.leaves_per_pod);
}

std::vector<NodeId> add_leaves(const ClosShape& shape, Fabric& fabric) {
  std::vector<NodeId> leaves;
  for (std::uint32_t leaf = 0; leaf < shape.pods * shape.leaves_per_pod; ++leaf) {
    leaves.push_back(fabric.add(NodeKind::kSwitch, leaf_name(shape, leaf)));
  }
  return leaves;
}

// Adds spines in order of pods, then of numbers.
std::vector<NodeId> add_spines(const ClosShape& shape, Fabric& fabric) {
  std::vector<NodeId> spines;
  for (std::uint32_t pod = 0; pod < shape.pods; ++pod) {
    const std::string prefix = has_pod_names(shape) ? fmt::format("pod{}.", pod) : "";
    for (std::uint32_t spine = 0; spine < shape.spines_per_pod; ++spine) {
      spines.push_back(fabric.add(NodeKind::kSwitch, fmt::format("{}spine{}", prefix, spine)));
    }
  }
  return spines;
}

// Adds cores in order of planes, then of numbers.
std::vector<NodeId> add_cores(const ClosShape& shape, Fabric& fabric) {
  std::vector<NodeId> cores;
  for (std::uint32_t plane = 0; plane < shape.spines_per_pod; ++plane) {
    for (std::uint32_t core = 0; core < shape.cores_per_plane; ++core) {
      cores.push_back(fabric.add(NodeKind::kSwitch, fmt::format("core{}.{}", plane, core)));
    }
  }
  return cores;
}

ClosLinks connect(const ClosShape& shape, Fabric& fabric) {
  const std::vector<NodeId> leaves = add_leaves(shape, fabric);
  const std::vector<NodeId> spines = add_spines(shape, fabric);
  const std::vector<NodeId> cores = add_cores(shape, fabric);
  const std::uint32_t spines_per_pod = shape.spines_per_pod;

  ClosLinks links;
  for (std::uint32_t endpoint = 0; endpoint < shape.endpoints; ++endpoint) {
    const std::uint32_t unit = endpoint / shape.rails / shape.endpoints_per_leaf;
    links.endpoint_up.push_back(fabric.connect(NodeId(endpoint),
                                               leaves[unit * shape.rails + endpoint % shape.rails],
                                               shape.endpoint_bandwidth, shape.link_latency));
  }
  for (std::uint32_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const std::uint32_t pod = leaf / shape.leaves_per_pod;
    for (std::uint32_t spine = 0; spine < spines_per_pod; ++spine) {
      links.leaf_up.push_back(fabric.connect(leaves[leaf], spines[pod * spines_per_pod + spine],
                                             shape.leaf_spine_bandwidth, shape.link_latency));
    }
  }
  for (std::uint32_t spine = 0; spine < spines.size(); ++spine) {
    const std::uint32_t plane = spine % spines_per_pod;
    for (std::uint32_t core = 0; core < shape.cores_per_plane; ++core) {
      links.spine_up.push_back(fabric.connect(spines[spine],
                                              cores[plane * shape.cores_per_plane + core],
                                              shape.spine_core_bandwidth, shape.link_latency));
    }
  }
  return links;
}

// Packets that go up from a leaf are spread over its spines, and those to a leaf come down from all
// spines. Packets that leave a pod go up from its spines to all cores and come down from all cores.
void add_groups(const ClosShape& shape, const ClosLinks& links, Fabric& fabric) {
  const auto add = [&](const std::vector<LinkId>& up, std::size_t first, std::size_t count) {
    if (count < 2) return;
    std::vector<LinkId> upward;
    std::vector<LinkId> downward;
    for (std::size_t i = first; i < first + count; ++i) {
      upward.push_back(up[i]);
      downward.emplace_back(up[i].index() + 1);
    }
    fabric.add_group(std::move(upward));
    fabric.add_group(std::move(downward));
  };
  const std::size_t spines = shape.spines_per_pod;
  for (std::size_t leaf = 0; leaf * spines < links.leaf_up.size(); ++leaf) {
    add(links.leaf_up, leaf * spines, spines);
  }
  const std::size_t to_cores = spines * shape.cores_per_plane;
  for (std::size_t pod = 0; pod * to_cores < links.spine_up.size(); ++pod) {
    add(links.spine_up, pod * to_cores, to_cores);
  }
}

std::vector<Level> full_levels(const ClosShape& shape) {
  const Level pod = {.name = "pod", .size = shape.pods, .members = LevelMembers::kPod};
  if (!shape.is_rail_optimised) {
    return {{.name = "chip", .size = shape.endpoints_per_leaf, .members = LevelMembers::kNode},
            {.name = "leaf", .size = shape.leaves_per_pod, .members = LevelMembers::kLeaf},
            pod};
  }
  // Every rail of a node is a port with one chip, so it is a node to the fabric.
  return {{.name = "rail", .size = shape.rails, .members = LevelMembers::kNode},
          {.name = "node", .size = shape.endpoints_per_leaf, .members = LevelMembers::kNode},
          {.name = "scalable_unit",
           .size = shape.leaves_per_pod / shape.rails,
           .members = LevelMembers::kPod},
          pod};
}

}  // namespace

BuiltTopology build(const ClosShape& shape) {
  BuiltTopology built;
  for (std::uint32_t endpoint = 0; endpoint < shape.endpoints; ++endpoint) {
    built.places.chips.push_back(
        built.fabric.add(NodeKind::kChip, fmt::format("chip{}", endpoint)));
  }
  ClosLinks links = connect(shape, built.fabric);
  if (shape.routing.rule == PathRule::kAdaptive) add_groups(shape, links, built.fabric);
  built.places.levels = levels_of_first(full_levels(shape), shape.endpoints);
  built.router = std::make_unique<ClosRouter>(shape, std::move(links));
  return built;
}

}  // namespace stepsim
