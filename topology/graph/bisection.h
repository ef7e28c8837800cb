// bisection_bandwidth() is the least bandwidth that crosses from one half of a fabric's chips to
// the other, over the halvings that were tried. It depends on the graph, not on how its chips are
// named, numbered or turned.
//
// The least cut over all halvings is hard to find (it is NP-hard), so this tries those that
// networks are built around, and improves them:
//
//   the order of the chips    builders number the innermost level first, so this cuts the outermost
//   nearer to a than to b     for ends a, b of a link: on a torus, mesh or hypercube of even sides
//                             that is exactly one side of the middle; and for nodes far apart: the
//                             parts of a network that hang together by few links
//   swaps                     the best of these are improved, chip against chip, by moves that cut
//                             less (Fiduccia, Mattheyses: "A linear-time heuristic for improving
//                             network partitions", DAC 1982); switches go to either side freely
//
// The bandwidth of a halving is the maximum flow from one half to the other, and so the narrowest
// cut between them, in the direction that carries less.

#pragma once

#include "sim/base/units.h"
#include "sim/network/fabric.h"

namespace stepsim {

// With an odd number of chips one half has one more. 0 with fewer than two chips. Takes tenths of a
// second for 10,000 chips.
Bandwidth bisection_bandwidth(const Fabric& fabric);

}  // namespace stepsim
