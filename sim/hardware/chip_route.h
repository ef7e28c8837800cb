// route_of() finds the links between two chips of a cluster.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/cluster.h"

namespace stepsim {

// Appends the route between two chips to `links` and returns the sum of its latencies.
Duration route_of(const Cluster& cluster, std::uint32_t from_chip, std::uint32_t to_chip,
                  std::vector<LinkId>& links);

}  // namespace stepsim
