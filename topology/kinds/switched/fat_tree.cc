#include "topology/kinds/switched/fat_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "topology/graph/clos.h"
#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr int kMostTreePorts = 1024;
constexpr std::int64_t kMostTreeHosts = 1 << 20;

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
  spec.endpoints = endpoints;
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
  } else if (checks.problems().empty() && !spec.endpoints && hosts(spec) > kMostTreeHosts) {
    checks.add("switch_ports",
               fmt::format("makes {} hosts, at most {} are possible", hosts(spec), kMostTreeHosts));
  }
  return checks.problems();
}

BuiltTopology build(const FatTreeSpec& spec) {
  assert(check(spec).empty());
  const std::uint32_t half = static_cast<std::uint32_t>(*spec.switch_ports) / 2;
  const bool has_cores = spec.tiers == 3;
  const Bandwidth tapered = spec.link_bandwidth / spec.taper;
  const std::uint32_t endpoints = std::min(hosts(spec), spec.endpoints.value_or(hosts(spec)));
  const std::uint32_t hosts_per_pod = leaves_per_pod(spec) * half;
  const std::uint32_t used_pods = std::max(1U, (endpoints + hosts_per_pod - 1) / hosts_per_pod);
  const std::uint32_t used_leaves = std::max(1U, (endpoints + half - 1) / half);
  return build(ClosShape{.endpoints = endpoints,
                         .endpoints_per_leaf = half,
                         .leaves_per_pod = used_pods == 1 ? used_leaves : leaves_per_pod(spec),
                         .pods = used_pods,
                         .spines_per_pod = half,
                         .cores_per_plane = has_cores && used_pods > 1 ? half : 0,
                         .endpoint_bandwidth = spec.link_bandwidth,
                         .leaf_spine_bandwidth = has_cores ? spec.link_bandwidth : tapered,
                         .spine_core_bandwidth = tapered,
                         .link_latency = spec.link_latency,
                         .routing = spec.routing,
                         .names_pods = pods(spec) > 1});
}

}  // namespace stepsim
