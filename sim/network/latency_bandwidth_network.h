// LatencyBandwidthNetwork moves every transfer as if it were alone: latency + bytes / bandwidth of
// its slowest link (capacity / weight, least over its links). Contention is not modelled. O(log n)
// per transfer, for n in flight.

#pragma once

#include <memory>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/network.h"

namespace stepsim {

std::unique_ptr<Network> make_latency_bandwidth_network(const Fabric& fabric);

}  // namespace stepsim
