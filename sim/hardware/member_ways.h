// member_ways() finds how the members of a group reach each other without passing through other
// chips. Groups that stand around switches alone have no use for it: one ring, or levels of rings,
// fill their ports. Where chips are linked to chips, a ring leaves links idle, and trees over all
// of them are packed (sim/collectives/algorithms/trees/tree_packing.h).
//
//     0 --- 1 === s === 4        ways: 0>1, 1>0, 1>4, 4>1 (over the switch s), ...
//     |     |                    not 0>4, whose route passes through chip 1
//     2 --- 3

#pragma once

#include <cstdint>
#include <span>

#include "sim/collectives/collective.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// Trees are packed in groups of at most this many members,
inline constexpr std::uint32_t kMostPackedMembers = 256;
// with at most this many ways,
inline constexpr std::size_t kMostPackedWays = 8192;
// over links of which the widest has at most this many times the bandwidth of the narrowest. Levels
// that lie further apart are worked on one after another.
inline constexpr double kMostWidths = 8;

// `chips`: the chip of each member. Empty where no two members are linked directly, where ways do
// not join all members in both directions, and beyond the limits above. O(members^2 x route) if any
// two members are linked directly, else O(members x links of a chip).
MemberWays member_ways(const Cluster& cluster, std::span<const std::uint32_t> chips);

}  // namespace stepsim
