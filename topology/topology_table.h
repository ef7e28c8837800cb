// The table of topologies, with one row for each kind. To add a topology, add a file pair in
// topology/kinds/ and a row in kTopologyKinds. Names in files, the variant BlockSpec, checks,
// builders, composed clusters and the catalog's families of sizes follow from the row
// (docs/adding-a-topology.md).
//
//   const BlockSpec spec = TorusSpec{.axes = {{.size = 4}}, .link_bandwidth = 90_GBps};
//   name_of(spec);                 // "torus"
//   check(spec);                   // problems, each under "torus."
//   build(spec).places.chips;      // the 4 chips
//
// Composed clusters (composed.h) have no row, because they are made of kinds that have one.

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
#include "topology/kinds/explicit_graph.h"
#include "topology/kinds/switched/dgx_superpod.h"
#include "topology/kinds/switched/dragonfly.h"
#include "topology/kinds/switched/fat_tree.h"
#include "topology/kinds/switched/leaf_spine.h"
#include "topology/kinds/switched/nvlink_domain.h"
#include "topology/kinds/switched/pcie_box.h"
#include "topology/kinds/switched/rail_fabric.h"
#include "topology/kinds/torus/torus.h"
#include "topology/kinds/torus/tpu_slice.h"
#include "topology/kinds/torus/twisted_torus.h"

namespace stepsim {

// TopologyKind is a row. The file pair of the kind declares Spec, check(Spec) and build(Spec).
template <typename SpecOfKind>
struct TopologyKind {
  using Spec = SpecOfKind;

  std::string_view name;     // name in files, and of its field in the messages Cluster and Block
  std::string_view summary;  // one sentence for `stepsim help topologies`
  const FieldTable<Spec>& (*fields)();  // the fields in files

  // Only for fabrics: gives a size to a spec that has none, so that there are places for that many
  // gateways. Null: the spec always gives its size.
  void (*fit)(Spec& spec, std::uint32_t gateways) = nullptr;

  // Only for rail-optimised fabrics: returns the number of rails of a node. Null: one rail.
  int (*rails)(const Spec& spec) = nullptr;

  // The field that holds the size of a catalog family counted in chips. Its value is the size
  // divided by the family's chips_per_count. Empty: the kind has no such families (tori are sized
  // by their axes).
  std::string_view count_field{};

  // The kind of link between chips of a node. It decides the costs of a communication library.
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

// BlockSpec is a topology that is not composed of others. Domains and fabrics of composed clusters
// are blocks.
using BlockSpec = decltype(variant_of(kTopologyKinds));

// Returns the default spec of that kind; nullopt if no row has the name.
std::optional<BlockSpec> block_named(std::string_view name);

// The fields of a block: one row for each kind. A file gives one of them.
const FieldTable<BlockSpec>& block_fields();

std::string_view name_of(const BlockSpec& spec);  // "fat_tree"

// Returns every problem of the spec, under its name: "torus.axes".
std::vector<Problem> check(const BlockSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const BlockSpec& spec);

// The functions below answer from the spec's row.
void fit(BlockSpec& spec, std::uint32_t gateways);
int rails_of(const BlockSpec& spec);
std::string_view count_field_of(const BlockSpec& spec);
HopKind inside_of(const BlockSpec& spec);

}  // namespace stepsim
