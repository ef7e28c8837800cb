// A dragonfly (Kim, Dally, Scott, Abts, ISCA 2008): groups of routers, all routers of a group
// cabled to each other, and every group to every other one.
//
//            group 0                      group 1
//     router0 ------ router1       router0 ------ router1       local links: every pair of a group
//       | \  \      /  / |           | \  \      /  / |
//       |  \ chips .. /  |           |  \ chips .. /  |
//       |   \        /   |           |   \        /   |
//     router3 ------ router2 ===== router3 ------ router2       global links: h of each router
//
// A router has p hosts, a - 1 local and h global links. There are g groups, 2 to a * h + 1. A group
// has a * h global links and cables floor(a * h / (g - 1)) of them to each other group; the rest
// are not cabled. Link q of group i goes to the group that is number q mod (g - 1) of the others
// and is on router q / h. A balanced dragonfly has a = 2p = 2h.
//
// Routes. Minimal: to the router of a global link to the destination's group, across, to the
// destination's router. Of several global links it takes the one numbered destination router modulo
// links. Valiant: first minimally to a random other group (a hash of seed, source, destination and
// flow key), then minimally to the destination; within a group as minimal. Valiant halves the best
// throughput but avoids the worst case: all traffic of a group goes to one other group, which
// shares one cable with minimal routing.
//
// Not modelled: adaptive routing (UGAL), which looks at queues.
//
// Levels of Places: chip, router, group.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/built_topology.h"

namespace stepsim {

template <class Struct>
class FieldTable;

enum class DragonflyRouting : std::uint8_t { kMinimal, kValiant };

struct DragonflySpec {
  int hosts_per_router = 4;         // p
  int routers_per_group = 8;        // a
  int global_links_per_router = 4;  // h
  std::optional<int> groups{};      // g; in a composed cluster: as many as its hosts need
  Bandwidth host_bandwidth{};       // one way, like all of these; no defaults
  Bandwidth local_bandwidth{};
  Bandwidth global_bandwidth{};
  Duration local_latency{};           // latency of host and local links; 0 unless given
  Duration global_latency{};          // 0 unless given
  std::optional<int> switch_ports{};  // ports of a router; given only to check the spec against it
  DragonflyRouting routing = DragonflyRouting::kMinimal;
  std::uint64_t routing_seed = 0;  // kValiant only
};

// Sets the size if none is given, so that there are ports for `endpoints`.
void fit(DragonflySpec& spec, std::uint32_t endpoints);

// The fields in files: topology/kinds/switched/dragonfly_fields.cc.
const FieldTable<DragonflySpec>& dragonfly_fields();

std::vector<Problem> check(const DragonflySpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const DragonflySpec& spec);

}  // namespace stepsim
