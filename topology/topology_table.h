// The table of topologies: one row a kind. A new topology is a file pair in topology/kinds/ and a
// row in kTopologyKinds. Names in files, the variant BlockSpec, checks, builders, composed clusters
// and the catalog's families of sizes follow from the row (docs/adding-a-topology.md).
//
//   const BlockSpec spec = TorusSpec{.axes = {{.size = 4}}, .link_bandwidth = 90_GBps};
//   name_of(spec);                 // "torus"
//   check(spec);                   // problems, each under "torus."
//   build(spec).places.chips;      // the 4 chips
//
// Composed clusters (composed.h) have no row: they are made of the kinds that have one.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "sim/base/error.h"
#include "sim/collectives/library.h"
#include "topology/graph/built_topology.h"
#include "topology/kinds/dgx_superpod.h"
#include "topology/kinds/dragonfly.h"
#include "topology/kinds/explicit_graph.h"
#include "topology/kinds/fat_tree.h"
#include "topology/kinds/leaf_spine.h"
#include "topology/kinds/nvlink_domain.h"
#include "topology/kinds/pcie_box.h"
#include "topology/kinds/rail_fabric.h"
#include "topology/kinds/torus.h"
#include "topology/kinds/tpu_slice.h"
#include "topology/kinds/twisted_torus.h"

namespace stepsim {

// A row. The file pair of the kind declares Spec, check(Spec) and build(Spec).
template <typename SpecOfKind>
struct TopologyKind {
  using Spec = SpecOfKind;

  std::string_view name;     // in files, and of its field in the messages Cluster and Block
  std::string_view summary;  // one sentence for `stepsim help topologies`
  const FieldTable<Spec>& (*fields)();  // what files give

  // Fabrics only: gives a size to a spec that has none, so that there are places for that many
  // gateways. Null: the spec always says its size.
  void (*fit)(Spec& spec, std::uint32_t gateways) = nullptr;

  // Rail-optimised fabrics only: how many rails a node has. Null: one.
  int (*rails)(const Spec& spec) = nullptr;

  // The field that takes the size of a catalog family counted in chips: the size divided by the
  // family's chips_per_count. Empty: the kind has no such families (tori are sized by their axes).
  std::string_view count_field{};

  // The kind of link between chips of a node. The costs of a communication library depend on it.
  HopKind inside = HopKind::kNvlink;
};

inline constexpr std::tuple kTopologyKinds = {
    TopologyKind<DgxSuperPodSpec>{
        .name = "dgx_superpod",
        .summary = "NVSwitch nodes, a card for each GPU, rail-optimised leaves, spines and cores.",
        .fields = dgx_superpod_fields,
        .count_field = "nodes"},
    TopologyKind<TorusSpec>{.name = "torus",
                            .summary = "One to three axes, each wrapped or not.",
                            .fields = torus_fields},
    TopologyKind<NvlinkDomainSpec>{
        .name = "nvlink_domain",
        .summary = "GPUs on one crossbar, or on each NVSwitch by its links.",
        .fields = nvlink_domain_fields,
        .count_field = "gpus"},
    TopologyKind<PcieBoxSpec>{.name = "pcie_box",
                              .summary = "GPUs under PCIe switches and one or two sockets.",
                              .fields = pcie_box_fields,
                              .count_field = "gpus",
                              .inside = HopKind::kPcie},
    TopologyKind<FatTreeSpec>{
        .name = "fat_tree",
        .summary = "Switches of one size in two or three tiers, tapered or not.",
        .fields = fat_tree_fields,
        .fit = fit},
    TopologyKind<LeafSpineSpec>{.name = "leaf_spine",
                                .summary = "Hosts on leaves, every leaf cabled to every spine.",
                                .fields = leaf_spine_fields,
                                .fit = fit,
                                .count_field = "leaves"},
    TopologyKind<RailFabricSpec>{
        .name = "rail_fabric",
        .summary = "The network of a SuperPod without its nodes: a leaf for each rail.",
        .fields = rail_fabric_fields,
        .fit = fit,
        .rails = [](const RailFabricSpec& spec) { return spec.rails; },
        .count_field = "nodes"},
    TopologyKind<DragonflySpec>{.name = "dragonfly",
                                .summary = "Groups of routers, with minimal or Valiant routes.",
                                .fields = dragonfly_fields,
                                .fit = fit,
                                .count_field = "groups"},
    TopologyKind<ExplicitGraphSpec>{.name = "explicit_graph",
                                    .summary = "Nodes, links and routes, listed one by one.",
                                    .fields = explicit_graph_fields},
    TopologyKind<TwistedTorusSpec>{
        .name = "twisted_torus",
        .summary = "K x K x 2K and K x 2K x 2K, short axes closed with a shift.",
        .fields = twisted_torus_fields},
    TopologyKind<TpuSliceSpec>{.name = "tpu_slice",
                               .summary = "The torus that a TPU generation makes of a shape.",
                               .fields = tpu_slice_fields},
};

template <typename... Kinds>
auto variant_of(const std::tuple<Kinds...>& kinds) -> std::variant<typename Kinds::Spec...>;

// A topology that is not composed of others: domains and fabrics of composed clusters are blocks.
using BlockSpec = decltype(variant_of(kTopologyKinds));

// The spec of that kind as it is before anything is read into it; nothing if no row has the name.
std::optional<BlockSpec> block_named(std::string_view name);

// One row for each kind, of which a file gives one.
const FieldTable<BlockSpec>& block_fields();

std::string_view name_of(const BlockSpec& spec);  // "fat_tree"

// Every problem of the spec, under its name: "torus.axes".
std::vector<Problem> check(const BlockSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const BlockSpec& spec);

// These answer from the spec's row.
void fit(BlockSpec& spec, std::uint32_t gateways);
int rails_of(const BlockSpec& spec);
std::string_view count_field_of(const BlockSpec& spec);
HopKind inside_of(const BlockSpec& spec);

}  // namespace stepsim
