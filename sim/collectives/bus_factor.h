// bus_factor() turns algorithm bandwidth (bytes / time) into the bus bandwidth of nccl-tests, which
// compares with the bandwidth of links whatever the number of members.

#pragma once

#include <cstdint>

#include "sim/collectives/collective.h"

namespace stepsim {

// Returns bus bandwidth x time / bytes: 2 (n-1)/n for all-reduce; (n-1)/n for gather, scatter,
// all-gather, reduce-scatter and all-to-all; 1 otherwise (nccl-tests, doc/PERFORMANCE.md).
double bus_factor(CollectiveOp op, std::uint32_t members);

}  // namespace stepsim
