#include "topology/kinds/switched/dgx_superpod.h"

#include <cassert>
#include <utility>

#include "topology/kinds/spec_checks.h"
#include "topology/kinds/switched/nvlink_domain.h"

namespace stepsim {
namespace {

RailFabricSpec network_of(const DgxSuperPodSpec& spec) {
  return {.nodes = spec.nodes,
          .rails = spec.gpus_per_node,
          .nodes_per_scalable_unit = spec.nodes_per_scalable_unit,
          .nic_bandwidth = spec.nic_bandwidth,
          .link_latency = spec.network_link_latency,
          .switch_ports = spec.switch_ports,
          .spines = spec.spines,
          .oversubscription = spec.oversubscription,
          .routing = spec.routing};
}

// Returns problems of the network under the field names of this spec.
std::vector<Problem> check_network(const DgxSuperPodSpec& spec) {
  const RailFabricSpec network = network_of(spec);
  std::vector<Problem> problems = spec.nodes == 1 ? check_fields(network) : check(network);
  for (Problem& problem : problems) {
    if (problem.field == "rails") problem.field = "gpus_per_node";
    if (problem.field == "link_latency") problem.field = "network_link_latency";
  }
  return problems;
}

}  // namespace

std::vector<Problem> check(const DgxSuperPodSpec& spec) {
  SpecChecks checks(dgx_superpod_fields(), spec);
  if (checks.found_none()) checks.add(check_network(spec));
  return checks.problems();
}

RailFabricSize network_size(const DgxSuperPodSpec& spec) {
  return spec.nodes == 1 ? RailFabricSize{} : size_of(network_of(spec));
}

BuiltTopology build(const DgxSuperPodSpec& spec) {
  assert(check(spec).empty());
  BuiltTopology node = build(NvlinkDomainSpec{.gpus = spec.gpus_per_node,
                                              .gpu_bandwidth = spec.nvlink_bandwidth,
                                              .link_latency = spec.nvlink_latency});
  std::optional<BuiltTopology> network;
  if (spec.nodes > 1) network = build(network_of(spec));
  const int rails = spec.cross_rail == CrossRail::kPxn ? spec.gpus_per_node : 1;
  return join(std::move(node),
              {.block = "node",
               .blocks = static_cast<std::uint32_t>(spec.nodes),
               .rails = static_cast<std::uint32_t>(rails)},
              std::move(network));
}

}  // namespace stepsim
