#include "topology/kinds/switched/leaf_spine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "topology/graph/clos.h"
#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostEndpoints = 1 << 20;
constexpr std::int64_t kMostUplinks = 1 << 24;

// REQUIRES: the spec's own numbers are in range.
void check_shape(const LeafSpineSpec& spec, SpecChecks& checks) {
  const int leaves = *spec.leaves;
  if (std::int64_t{leaves} * spec.hosts_per_leaf > kMostEndpoints) {
    checks.add("leaves", fmt::format("must hold at most {} endpoints, {} leaves of {} are too many",
                                     kMostEndpoints, leaves, spec.hosts_per_leaf));
  }
  if (leaves > 1 && spec.spines == 0) {
    checks.add("spines", fmt::format("must be at least 1 to join {} leaves, is 0", leaves));
  }
  if (std::int64_t{leaves} * spec.spines > kMostUplinks) {
    checks.add("spines", fmt::format("must make at most {} links to the leaves, {} spines of {} "
                                     "leaves make too many",
                                     kMostUplinks, spec.spines, leaves));
  }
  if (!spec.switch_ports) return;
  if (spec.hosts_per_leaf + spec.spines > *spec.switch_ports) {
    checks.add("hosts_per_leaf",
               fmt::format("{} hosts and {} spines need {} ports of a leaf, a switch has {}",
                           spec.hosts_per_leaf, spec.spines, spec.hosts_per_leaf + spec.spines,
                           *spec.switch_ports));
  }
  if (spec.spines > 0 && leaves > *spec.switch_ports) {
    checks.add("leaves", fmt::format("{} leaves need as many ports of a spine, a switch has {}",
                                     leaves, *spec.switch_ports));
  }
}

}  // namespace

void fit(LeafSpineSpec& spec, std::uint32_t endpoints) {
  if (spec.leaves || spec.hosts_per_leaf < 1) return;
  spec.leaves =
      static_cast<int>((endpoints - 1) / static_cast<std::uint32_t>(spec.hosts_per_leaf)) + 1;
}

std::vector<Problem> check(const LeafSpineSpec& spec) {
  SpecChecks checks(leaf_spine_fields(), spec);
  if (!spec.leaves) checks.add("leaves", "must be given where the network stands alone");
  if (checks.found_none()) check_shape(spec, checks);
  return checks.problems();
}

BuiltTopology build(const LeafSpineSpec& spec) {
  assert(check(spec).empty());
  const Bandwidth uplinks = (spec.hosts_per_leaf / spec.oversubscription) * spec.host_bandwidth;
  return build(
      ClosShape{.endpoints = static_cast<std::uint32_t>(*spec.leaves * spec.hosts_per_leaf),
                .endpoints_per_leaf = static_cast<std::uint32_t>(spec.hosts_per_leaf),
                .leaves_per_pod = static_cast<std::uint32_t>(*spec.leaves),
                .spines_per_pod = static_cast<std::uint32_t>(spec.spines),
                .endpoint_bandwidth = spec.host_bandwidth,
                .leaf_spine_bandwidth = uplinks / std::max(1, spec.spines),
                .link_latency = spec.link_latency,
                .routing = spec.routing});
}

}  // namespace stepsim
