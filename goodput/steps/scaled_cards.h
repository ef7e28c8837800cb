// The network cards of chips: the links by which traffic leaves a node.

#pragma once

#include <cstdint>

#include "sim/hardware/cluster.h"

namespace stepsim {

// Returns the bandwidth with which a chip sends out of its node, one way; where there is no way
// out, or every chip is a node, that of all its links.
Bandwidth card_bandwidth(const Cluster& cluster, std::int64_t chips_per_node);

// Leaves this share of the cards' bandwidth in both directions. Routes stay. REQUIRES: 0 < share
// <= 1.
void scale_cards(double share, std::int64_t chips_per_node, Cluster& cluster);

}  // namespace stepsim
