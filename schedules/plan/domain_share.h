// domain_share() says how many chips of each node (8 of a server, 72 of a rack) have
// ranks.
//
//   rack of 72      gpu0 ............... gpu63 | gpu64 .. gpu71      tp 4, dp 32 on two racks:
//                   ranks 0 to 63              | idle                64 ranks in each
//
// A group that is spread unevenly over domains has members that wait for the others' share of the
// network. A share is even if each axis but pp, and each axis of experts, either fills whole shares
// or lies in an equal part of one: its stride and its extent both divide the share or are multiples
// of it. Software on racks of 72 takes 64 chips of each for the same reason.
//
// Not considered: axes that are mapped to levels by name (Ranks::map), and tori.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/network/places.h"

namespace stepsim {

// Returns chips_per_domain; unset: the domain's chips, or the largest even share for which the
// cluster has enough domains, if all of them are none and there is one. O(chips of a domain).
std::int64_t domain_share(const Ranks& mesh, const Places& places);

// Returns chips: `share` of each `domain`.
std::vector<std::uint32_t> place_by_domains(std::int64_t ranks, std::int64_t share,
                                            std::int64_t domain);

}  // namespace stepsim
