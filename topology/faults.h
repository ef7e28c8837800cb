// Faults are links that are slow or down, as data on top of any topology.
//
//   Faults{.links = {{.link = "node0.gpu3-su0.leaf3", .capacity = 0.5},   // both ways, half speed
//                    {.link = "su0.leaf5>spine*", .down = true}}};        // one way, to all spines
//   built = apply(faults, std::move(built));
//
// A link is named by its ends, "a>b" for that direction and "a-b" for both; `*` stands for any
// characters, so "spine3-*" is all that a switch has. Where several faults name one link, the worst
// one counts, whatever their order.
//
// A slow link has less bandwidth and is routed over as before: its topology does not know. A link
// that is down is gone from the fabric, so no measure counts it. Routes are made anew, as a fabric
// manager makes them after a failure (the seconds before it does so are not modelled):
//
//   Where a topology has equal paths (spines, cores, NVSwitches, planes, global cables of a
//   dragonfly) a pair chooses by its usual rule among those that are whole. So a failed spine's
//   flows are spread over all that are left, and pairs that miss no path keep their routes.
//   A pair that has no such path takes the shortest one in hops over what is left, through hosts
//   only where nothing else leads on (ties: shortest_path.h): one path, whatever the flow key.
//
// Not modelled: faults that come or go during a run; chips that are down (make the cluster
// smaller, or leave them idle by the plan).

#pragma once

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
  std::optional<double> capacity{};  // share of its bandwidth that is left: over 0, at most 1
  bool down = false;                 // either this or a capacity
};

struct Faults {
  std::vector<LinkFault> links{};
};

// What files give.
const FieldTable<Faults>& fault_fields();

// "links[2].capacity". Also says which chips would no longer reach all others.
std::vector<Problem> check(const Faults& faults, const BuiltTopology& built);

// The same nodes, chips and places; links that are left are numbered anew, in the same order.
// REQUIRES: check(faults, built) is empty.
BuiltTopology apply(const Faults& faults, BuiltTopology built);

}  // namespace stepsim
