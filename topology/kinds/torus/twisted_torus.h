// A twisted torus of three axes, some with K chips and the others with 2K: the wiring of a TPU v4
// or v5p slice whose name ends in "_twisted" (Jouppi et al., ISCA 2023, section 2.8; after Camara
// et al., "Twisted torus topologies for enhanced interconnection networks", 2010).
//
//                      z = 0 1 2 3 4 5 6 7      one plane of 4 x 4 x 8 (K = 4), seen along y
//          x = 3           a b c d e f g h
//              2           . . . . . . . .      plus along x from the top row arrives in the bottom
//              1           . . . . . . . .      row K further along z: from a (z = 0) comes the
//          x = 0           e f g h a b c d      chip that is marked a (z = 4), and so on
//
// Cables. Inside the box every chip is cabled to its next neighbour on each axis, and a long axis
// closes into a ring, as in a torus. If a short axis closes, the cable arrives shifted by K on
// every long axis: with K = 4 in 4x4x8, (3, y, z) > (0, y, z + 4 mod 8) and (x, 3, z) > (x, 0, z +
// 4 mod 8); in 4x8x8, (3, y, z) > (0, y + 4 mod 8, z + 4 mod 8). So every chip has six cables, as
// many as in the torus of the same shape, and all places are equivalent. A walk of 2K hops along a
// short axis returns to its start after visiting both halves.
//
// The gain: from half to half of a long axis there are 6 K^2 cables instead of 2 K^2 (K x K x 2K),
// and the furthest chip is 1.5 K hops away instead of 2 K or 2.5 K.
//
// Routes are shortest paths: the wraps of short axes are chosen for the fewest hops, and the route
// takes all of x, then y, then z. Among equally short ones, more hops in the plus direction win, on
// x first, then y, then z. So a route depends only on the relative position of the two chips.
//
// Levels of Places: x, y, z. A short axis is no ring (its last chip is cabled to the first one of
// another row): its level twists and does not wrap. All-to-alls, gathers and scatters of all chips
// use the cables of the twist (sim/collectives/algorithms/torus/twisted_all_to_all.h). Other
// collectives along a short axis work as on a line, and those along a long axis as on a ring.

#pragma once

#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/built_topology.h"

namespace stepsim {

template <class Struct>
class FieldTable;

struct TwistedTorusSpec {
  std::vector<int> shape{};    // x, y, z: K x K x 2K or K x 2K x 2K in any order; K at least 2
  Bandwidth link_bandwidth{};  // one way; no default
  Duration link_latency{};     // one hop; 0 unless given
};

// The fields in files: topology/kinds/torus/twisted_torus_fields.cc.
const FieldTable<TwistedTorusSpec>& twisted_torus_fields();

std::vector<Problem> check(const TwistedTorusSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const TwistedTorusSpec& spec);

}  // namespace stepsim
