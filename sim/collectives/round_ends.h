// end_of_rounds() returns the time at which every round of every lane is over if only trips count.
// A round follows the round before it, and the rounds of other lanes that a gate names. This time
// is the latency of a pipelined collective.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"

namespace stepsim {

// `trips`: the longest trip, by lane and round. O(lanes x rounds), times members if lanes are
// gated.
Duration end_of_rounds(const CollectiveAlgorithm& algorithm,
                       const std::vector<std::vector<Duration>>& trips);

// Returns the time at which the last byte arrives if every member passes everything it receives on
// to the same other member. `next`: that member, by sender; a permutation. `hop`: the trip there.
// O(members).
Duration end_of_relay(std::uint32_t rounds, const std::vector<std::uint32_t>& next,
                      const std::vector<Duration>& hop);

}  // namespace stepsim
