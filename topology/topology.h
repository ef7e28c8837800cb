// The topologies of stepsim. Start here. topology_table.h lists the kinds; each is a file pair in
// topology/kinds/ (spec, check, build). topology/graph/ has the means to build and measure them.
//
//   const BuiltTopology built = build_topology(DgxSuperPodSpec{.nodes = 64});
//   std::vector<LinkId> links;
//   built.router->route(built.places.chips[0], built.places.chips[511], 0, links);
//
//   inside a machine   nvlink_domain.h, pcie_box.h, torus.h, twisted_torus.h, tpu_slice.h
//   between machines   fat_tree.h, leaf_spine.h, rail_fabric.h, dragonfly.h
//   whole clusters     dgx_superpod.h; composed.h makes one of the others
//   anything else      explicit_graph.h lists nodes and links; faults.h slows links or cuts them

#pragma once

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/error.h"
#include "topology/composed.h"
#include "topology/faults.h"
#include "topology/graph/built_topology.h"
#include "topology/topology_table.h"

namespace stepsim {

template <typename... Specs>
auto with_composed(const std::variant<Specs...>& blocks) -> std::variant<Specs..., ComposedSpec>;

// TopologySpec is any topology: a block, or one composed of blocks.
using TopologySpec = decltype(with_composed(std::declval<BlockSpec>()));

// Returns the kind of link between the chips of a node; in a composed cluster, between those of its
// domain.
HopKind inside_of(const TopologySpec& spec);

// Returns every problem of the spec, under the name of its topology: "dgx_superpod.nodes".
std::vector<Problem> check(const TopologySpec& spec);

// Also returns those of its faults, if it can be built: "faults.links[0].link".
std::vector<Problem> check(const TopologySpec& spec, const Faults& faults);

// Returns nullopt if check() finds a problem.
std::optional<BuiltTopology> build_if_valid(const TopologySpec& spec, const Faults& faults);

// Throws ConfigError with every problem, named as by check().
BuiltTopology build_topology(const TopologySpec& spec, const Faults& faults = {});

}  // namespace stepsim
