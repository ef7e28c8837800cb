// A torus of one, two or three axes: every chip is cabled to its next neighbour on each axis, and
// an axis that wraps closes into a ring. It is the network of TPU pods (v5p: 4x4x4 up to 16x20x28).
//
//     chip0.2 -- chip1.2 -- chip2.2 -- chip3.2 --
//        |          |          |          |            4 x 3 chips; x wraps: the last chip of a
//     chip0.1 -- chip1.1 -- chip2.1 -- chip3.1 --      row is cabled to the first of the same
//        |          |          |          |            row (the "--" on the right); y does not
//     chip0.0 -- chip1.0 -- chip2.0 -- chip3.0 --      wrap; chip number = x + 4 * y
//
// Each cable is two one-way links of `link_bandwidth`. There are no switches, so a chip on three
// wrapped axes drives six cables. Routing is in dimension order: all of x, then y, then z. On a
// wrapped axis it goes the shorter way round, and in the plus direction (towards higher
// coordinates) if both ways are equally long. A pair has one route, so the flow key changes
// nothing. Not modelled: adaptive routing. See twisted_torus.h for twisted tori, faults.h for
// broken links, and tpu_slice.h for the tori of TPU slices.
//
// Two chips on an axis have one cable between them. Hardware that closes such an axis with a second
// cable is not modelled. A wrapped axis of fewer than 3 chips is refused, so that nobody counts on
// bandwidth that does not exist.
//
// Levels of Places, innermost first: x, y, z. At most 2^20 chips.

#pragma once

#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/built_topology.h"

namespace stepsim {

template <class Struct>
class FieldTable;

struct TorusAxis {
  int size = 1;
  bool wraps = false;  // a ring; needs at least 3 chips
};

struct TorusSpec {
  std::vector<TorusAxis> axes{};  // x, y, z: one to three of them
  Bandwidth link_bandwidth{};     // one way, v5p: 90 GB/s; no default
  Duration link_latency{};        // one hop; 0 unless given
};

// The fields in files: topology/kinds/torus/torus_fields.cc.
const FieldTable<TorusSpec>& torus_fields();

std::vector<Problem> check(const TorusSpec& spec);

// Time and memory: O(chips x axes). REQUIRES: check(spec) is empty.
BuiltTopology build(const TorusSpec& spec);

}  // namespace stepsim
