#include "topology/kinds/fat_tree.h"

#include <fmt/format.h>

#include "topology/graph/clos.h"
#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr int kMostTreePorts = 128;

std::uint32_t pods(const FatTreeSpec& spec) {
  return spec.tiers == 2 ? 1 : static_cast<std::uint32_t>(*spec.switch_ports);
}

std::uint32_t leaves_per_pod(const FatTreeSpec& spec) {
  const auto ports = static_cast<std::uint32_t>(*spec.switch_ports);
  return spec.tiers == 2 ? ports : ports / 2;
}

std::uint32_t hosts(const FatTreeSpec& spec) {
  return pods(spec) * leaves_per_pod(spec) * (static_cast<std::uint32_t>(*spec.switch_ports) / 2);
}

}  // namespace

void fit(FatTreeSpec& spec, std::uint32_t endpoints) {
  if (spec.switch_ports) return;
  spec.switch_ports = 2;
  while (*spec.switch_ports < kMostTreePorts && hosts(spec) < endpoints) *spec.switch_ports += 2;
}

std::vector<Problem> check(const FatTreeSpec& spec) {
  SpecChecks checks(fat_tree_fields(), spec);
  if (!spec.switch_ports) {
    checks.add("switch_ports", "must be given where the network stands alone");
  } else if (*spec.switch_ports % 2 != 0) {
    checks.add("switch_ports", fmt::format("must be even, is {}", *spec.switch_ports));
  }
  return checks.problems();
}

BuiltTopology build(const FatTreeSpec& spec) {
  const std::uint32_t half = static_cast<std::uint32_t>(*spec.switch_ports) / 2;
  const bool has_cores = spec.tiers == 3;
  const Bandwidth tapered = spec.link_bandwidth / spec.taper;
  return build(ClosShape{.endpoints = hosts(spec),
                         .endpoints_per_leaf = half,
                         .leaves_per_pod = leaves_per_pod(spec),
                         .pods = pods(spec),
                         .spines_per_pod = half,
                         .cores_per_plane = has_cores ? half : 0,
                         .endpoint_bandwidth = spec.link_bandwidth,
                         .leaf_spine_bandwidth = has_cores ? spec.link_bandwidth : tapered,
                         .spine_core_bandwidth = tapered,
                         .link_latency = spec.link_latency,
                         .routing = spec.routing});
}

}  // namespace stepsim
