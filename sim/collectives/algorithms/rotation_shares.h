// rotation_shares() says how much of the data each rotation of the axes of a torus carries
// (multi_axis.h): an equal share, except on lines of unequal length. There a long line would wait
// for a short one, so the shares are chosen to keep all lines equally busy: a rotation leaves most
// of its data on its first axis, and so it gets more where that axis is short.
//
// In a reduce-scatter the first axis of a rotation, with n members, carries (n-1)/n of what the
// rotation brings. The next axis carries the same of the n-th part that is left, and so on. In an
// all-reduce the busiest link of a line carries a whole buffer instead of (n-1)/n.
//
// With N members, S bytes and links of W bytes/s one way, M lines that are equally busy take
// (N-1)/N S/(M W) whatever their lengths: as little as the ports of a member in the corner allow.
// That is the time of a pipelined collective. Stepped, axes of one rotation take turns, and the
// rotation with the largest share ends last.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/collectives/collective.h"

namespace stepsim {

// Returns shares as whole numbers, by the axis that a rotation begins with. `axes` are torus axes.
// REQUIRES: at least one axis; is_ring_op(op).
std::vector<std::uint32_t> rotation_shares(CollectiveOp op, std::span<const GroupDimension> axes);

}  // namespace stepsim
