// BlockSpec is any topology that is not composed of others: what clusters are made of, as domains
// and as fabrics (composed.h). Adding a topology adds its spec here, and its name in block.cc.

#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/error.h"
#include "topology/built_topology.h"
#include "topology/dgx_superpod.h"
#include "topology/dragonfly.h"
#include "topology/explicit_graph.h"
#include "topology/fat_tree.h"
#include "topology/leaf_spine.h"
#include "topology/nvlink_domain.h"
#include "topology/pcie_box.h"
#include "topology/rail_fabric.h"
#include "topology/torus.h"
#include "topology/tpu_slice.h"
#include "topology/twisted_torus.h"

namespace stepsim {

using BlockSpec = std::variant<DgxSuperPodSpec, TorusSpec, NvlinkDomainSpec, PcieBoxSpec,
                               FatTreeSpec, LeafSpineSpec, RailFabricSpec, DragonflySpec,
                               ExplicitGraphSpec, TwistedTorusSpec, TpuSliceSpec>;

std::string_view name_of(const BlockSpec& spec);  // "fat_tree", as in files

// Every problem of the spec, under its name: "torus.axes".
std::vector<Problem> check(const BlockSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const BlockSpec& spec);

// Gives a size to a fabric that has none, so that there are places for that many gateways.
void fit(BlockSpec& spec, std::uint32_t gateways);

// Rails of a rail-optimised fabric, 1 of all others.
int rails_of(const BlockSpec& spec);

}  // namespace stepsim
