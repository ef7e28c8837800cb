#include "topology/kinds/switched/rail_fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>

#include "topology/graph/clos.h"
#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostRailEndpoints = 1 << 20;

int divide_rounding_up(int whole, int parts) {
  return (whole - 1) / parts + 1;
}

// Returns the uplink cables of a leaf. A fraction of a cable takes a whole port.
int uplinks(const RailFabricSpec& spec) {
  return static_cast<int>(std::ceil(spec.nodes_per_scalable_unit / spec.oversubscription));
}

int most_oversubscription(const RailFabricSpec& spec) {
  return std::max(1, spec.nodes_per_scalable_unit);
}

int scalable_units(const RailFabricSpec& spec) {
  return divide_rounding_up(*spec.nodes, spec.nodes_per_scalable_unit);
}

int leaves(const RailFabricSpec& spec) {
  return scalable_units(spec) * spec.rails;
}

bool has_cores(const RailFabricSpec& spec) {
  return leaves(spec) > spec.switch_ports;
}

// Returns the units of a pod below a core tier, which takes half of the ports of a spine; 0 if a
// unit has more leaves than that.
int units_per_pod(const RailFabricSpec& spec) {
  return spec.switch_ports / 2 / spec.rails;
}

// Returns the fewest switches of `ports` ports that take `cables` from each of `senders`, spread
// evenly. REQUIRES: senders <= ports.
int fewest_switches(int senders, int cables, int ports) {
  int switches = 1;
  while (senders * divide_rounding_up(cables, switches) > ports) ++switches;
  return switches;
}

// PodShape is a pod or, without a core tier, the whole network. A core tier takes half of a spine's
// ports.
struct PodShape {
  int leaves = 0;
  int ports = 0;  // ports of a spine that leaves can use
};

PodShape pod_of(const RailFabricSpec& spec) {
  if (!has_cores(spec)) return {.leaves = leaves(spec), .ports = spec.switch_ports};
  return {.leaves = units_per_pod(spec) * spec.rails, .ports = spec.switch_ports / 2};
}

// Returns the spines of a pod.
int spines_of(const RailFabricSpec& spec) {
  const PodShape pod = pod_of(spec);
  return spec.spines.value_or(fewest_switches(pod.leaves, uplinks(spec), pod.ports));
}

// Returns the most cables from a leaf to a spine that the spine has ports for.
int most_pair_cables(const RailFabricSpec& spec) {
  return pod_of(spec).ports / pod_of(spec).leaves;
}

// Returns whether the given spines have too few ports for all uplinks. Leaves then use only as many
// as there are ports.
bool is_tapered_by_spines(const RailFabricSpec& spec) {
  return spines_of(spec) * most_pair_cables(spec) < uplinks(spec);
}

// Returns the cables between a leaf and a spine. A fraction takes a whole port.
double pair_cables(const RailFabricSpec& spec) {
  if (is_tapered_by_spines(spec)) return most_pair_cables(spec);
  return spec.nodes_per_scalable_unit / spec.oversubscription / spines_of(spec);
}

// REQUIRES: the spec's own numbers are in range.
void check_ports(const RailFabricSpec& spec, SpecChecks& checks) {
  const int ports = spec.switch_ports;
  if (spec.rails > ports) {
    checks.add("rails", fmt::format("must be at most {} with several nodes (a spine of {} ports "
                                    "needs one for the leaf of each GPU of a node), is {}",
                                    ports, ports, spec.rails));
  }
  if (spec.nodes_per_scalable_unit >= ports ||
      spec.nodes_per_scalable_unit + uplinks(spec) > ports) {
    checks.add("nodes_per_scalable_unit",
               fmt::format("must leave a leaf of {} ports room for its uplinks: at most "
                           "{} without oversubscription, is {}",
                           ports, ports / 2, spec.nodes_per_scalable_unit));
  }
  if (!checks.found_none()) return;

  const int most_units = std::max(ports / spec.rails, ports * units_per_pod(spec));
  if (scalable_units(spec) > most_units) {
    const int most_nodes = most_units * spec.nodes_per_scalable_unit;
    checks.add("nodes", fmt::format("must be at most {} ({} GPUs): three tiers of switches of {} "
                                    "ports reach {} leaves; is {}",
                                    most_nodes, std::int64_t{most_nodes} * spec.rails, ports,
                                    most_units * spec.rails, *spec.nodes));
  } else if (spec.spines && *spec.spines > uplinks(spec)) {
    checks.add("spines",
               fmt::format("must be 1 to {}, one uplink of each leaf for every spine{}; "
                           "is {}",
                           uplinks(spec), has_cores(spec) ? " of its pod" : "", *spec.spines));
  }
}

// SwitchCounts holds the numbers of switches of a pod and of a plane of cores.
struct SwitchCounts {
  int leaves_per_pod = 0;
  int pods = 1;
  int spines_per_pod = 0;
  int cores_per_plane = 0;
};

SwitchCounts switch_counts(const RailFabricSpec& spec) {
  SwitchCounts counts = {.leaves_per_pod = pod_of(spec).leaves, .spines_per_pod = spines_of(spec)};
  if (!has_cores(spec)) return counts;
  counts.pods = divide_rounding_up(scalable_units(spec), units_per_pod(spec));
  const int spine_uplinks = counts.leaves_per_pod * static_cast<int>(std::ceil(pair_cables(spec)));
  counts.cores_per_plane = fewest_switches(counts.pods, spine_uplinks, spec.switch_ports);
  return counts;
}

}  // namespace

void fit(RailFabricSpec& spec, std::uint32_t endpoints) {
  if (spec.nodes || spec.rails < 1) return;
  spec.nodes = divide_rounding_up(static_cast<int>(endpoints), spec.rails);
}

std::vector<Problem> check_fields(const RailFabricSpec& spec) {
  SpecChecks checks(rail_fabric_fields(), spec);
  if (!spec.nodes) checks.add("nodes", "must be given where the network stands alone");
  if (spec.oversubscription > most_oversubscription(spec)) {
    checks.add("oversubscription",
               fmt::format("must be 1 to {} (one uplink cable of a leaf), is {}",
                           most_oversubscription(spec), spec.oversubscription));
  }
  if (checks.found_none() && std::int64_t{*spec.nodes} * spec.rails > kMostRailEndpoints) {
    checks.add("nodes", fmt::format("must have at most {} GPUs together, {} nodes have {}",
                                    kMostRailEndpoints, *spec.nodes,
                                    std::int64_t{*spec.nodes} * spec.rails));
  }
  return checks.problems();
}

std::vector<Problem> check(const RailFabricSpec& spec) {
  SpecChecks checks;
  checks.add(check_fields(spec));
  if (checks.found_none()) check_ports(spec, checks);
  return checks.problems();
}

RailFabricSize size_of(const RailFabricSpec& spec) {
  const SwitchCounts counts = switch_counts(spec);
  const Bandwidth leaf_spine = pair_cables(spec) * spec.nic_bandwidth;
  RailFabricSize size = {.scalable_units = scalable_units(spec),
                         .leaves = counts.pods * counts.leaves_per_pod,
                         .pods = counts.pods,
                         .spines = counts.pods * counts.spines_per_pod,
                         .cores = counts.spines_per_pod * counts.cores_per_plane,
                         .leaf_spine_bandwidth = leaf_spine};
  if (has_cores(spec)) {
    size.spine_core_bandwidth =
        (static_cast<double>(counts.leaves_per_pod) / counts.cores_per_plane) * leaf_spine;
  }
  return size;
}

BuiltTopology build(const RailFabricSpec& spec) {
  assert(check(spec).empty());
  const SwitchCounts counts = switch_counts(spec);
  const RailFabricSize size = size_of(spec);
  return build(
      ClosShape{.endpoints = static_cast<std::uint32_t>(*spec.nodes * spec.rails),
                .rails = static_cast<std::uint32_t>(spec.rails),
                .endpoints_per_leaf = static_cast<std::uint32_t>(spec.nodes_per_scalable_unit),
                .leaves_per_pod = static_cast<std::uint32_t>(counts.leaves_per_pod),
                .pods = static_cast<std::uint32_t>(counts.pods),
                .spines_per_pod = static_cast<std::uint32_t>(counts.spines_per_pod),
                .cores_per_plane = static_cast<std::uint32_t>(counts.cores_per_plane),
                .endpoint_bandwidth = spec.nic_bandwidth,
                .leaf_spine_bandwidth = size.leaf_spine_bandwidth,
                .spine_core_bandwidth = size.spine_core_bandwidth,
                .link_latency = spec.link_latency,
                .routing = spec.routing,
                .is_rail_optimised = true});
}

}  // namespace stepsim
