// end_of_rounds() is when every round of every lane is over, if only trips counted: a round follows
// the one before it, and the rounds of other lanes that a gate names. It is the latency of a
// pipelined collective.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"

namespace stepsim {

// `trips`: by lane and round, the longest. O(lanes x rounds), times members where lanes are gated.
Duration end_of_rounds(const CollectiveAlgorithm& algorithm,
                       const std::vector<std::vector<Duration>>& trips);

// When the last byte has gone its way where members pass on to the next one what they receive.
// `hop`: of the message that each member sends, to `next`, in every round. O(rounds x members).
Duration end_of_relay(std::uint32_t rounds, const std::vector<std::uint32_t>& next,
                      const std::vector<Duration>& hop);

}  // namespace stepsim
