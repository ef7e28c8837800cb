// Faults are links that are slow or down, as data on top of any topology.
//
//   Faults{.links = {{.link = "node0.gpu3-su0.leaf3", .capacity = 0.5},   // both ways, half speed
//                    {.link = "su0.leaf5>spine*", .down = true}}};        // one way, to all spines
//   built = apply(faults, std::move(built));
//
// A link is named by its ends: "a>b" for that direction and "a-b" for both. `*` stands for any
// characters, so "spine3-*" names all links of a switch. If several faults name one link, the worst
// one counts, whatever their order.
//
// A slow link has less bandwidth but keeps its routes, because its topology does not know about it.
// A link that is down is removed from the fabric, so no measure counts it. Routes are made again,
// as a fabric manager makes them after a failure (the seconds before that are not modelled):
//
//   If a topology has equal paths (spines, cores, NVSwitches, planes, global cables of a
//   dragonfly), a pair chooses by its usual rule among the intact ones. So a failed spine's flows
//   are spread over all remaining spines, and pairs that lose no path keep their routes.
//   A pair without such a path takes the shortest one in hops over the remaining links. It goes
//   through hosts only if nothing else leads on (ties: shortest_path.h). That is one path for
//   every flow key.
//
// Not modelled: faults that come or go during a run; chips that are down (make the cluster smaller,
// or leave them idle by the plan).

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "topology/graph/built_topology.h"

namespace stepsim {

template <class Struct>
class FieldTable;

struct LinkFault {
  std::string link{};                // "a>b" or "a-b", with `*`
  std::optional<double> capacity{};  // remaining share of its bandwidth: over 0, at most 1
  bool down = false;                 // either this or a capacity must be given
};

struct Faults {
  std::vector<LinkFault> links{};
};

// The fields in files.
const FieldTable<Faults>& fault_fields();

// A one-way link of the whole fabric that a fault slows or takes away.
struct DamagedLink {
  LinkId link;
  double capacity = 0;  // remaining share of its bandwidth; 0: down
  std::size_t fault =
      0;  // position in Faults::links; of several the worst, of equal ones the first
};
// In order of links. `whole`: without faults.
std::vector<DamagedLink> damaged_links(const Faults& faults, const Fabric& whole);

// Returns problems such as "links[2].capacity". It also names chips that would no longer reach all
// others.
std::vector<Problem> check(const Faults& faults, const BuiltTopology& built);

// Returns the same nodes, chips and places. The remaining links are renumbered in the same order.
// REQUIRES: check(faults, built) is empty.
BuiltTopology apply(const Faults& faults, BuiltTopology built);

}  // namespace stepsim
