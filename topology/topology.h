// The topologies stepsim knows: start here. To add one, write its own file pair (spec, check,
// build), then name its spec in the variant below and in topology.cc.
//
//   const BuiltTopology built = build_topology(DgxSuperPodSpec{.nodes = 64});
//   std::vector<LinkId> links;
//   built.router->route(built.places.chips[0], built.places.chips[511], 0, links);

#pragma once

#include <variant>
#include <vector>

#include "sim/base/error.h"
#include "topology/built_topology.h"
#include "topology/dgx_superpod.h"
#include "topology/torus.h"

namespace stepsim {

using TopologySpec = std::variant<DgxSuperPodSpec, TorusSpec>;

// Every problem of the spec, under the name of its topology: "dgx_superpod.nodes".
std::vector<Problem> check(const TopologySpec& spec);

// Throws ConfigError with every problem of the spec, as check() names them.
BuiltTopology build_topology(const TopologySpec& spec);

}  // namespace stepsim
