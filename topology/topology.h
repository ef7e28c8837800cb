// The topologies stepsim knows: start here. To add one, write its own file pair (spec, check,
// build), then name its spec in block.h.
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

#include <variant>
#include <vector>

#include "sim/base/error.h"
#include "topology/block.h"
#include "topology/built_topology.h"
#include "topology/composed.h"
#include "topology/faults.h"

namespace stepsim {

// `Variant` with one more alternative.
template <typename Variant, typename Another>
struct WithAnother;
template <typename... Alternatives, typename Another>
struct WithAnother<std::variant<Alternatives...>, Another> {
  using type = std::variant<Alternatives..., Another>;
};

using TopologySpec = WithAnother<BlockSpec, ComposedSpec>::type;

// Every problem of the spec, under the name of its topology: "dgx_superpod.nodes".
std::vector<Problem> check(const TopologySpec& spec);

// Also those of its faults, once it can be built: "faults.links[0].link".
std::vector<Problem> check(const TopologySpec& spec, const Faults& faults);

// Throws ConfigError with every problem, as check() names them.
BuiltTopology build_topology(const TopologySpec& spec, const Faults& faults = {});

}  // namespace stepsim
