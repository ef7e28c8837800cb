// Checks the size of a run on the packet network before it starts, and whether the user wants it.

#pragma once

#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"

namespace stepsim {

// Says on standard error how many packet-hops the run has and roughly how long it takes. Throws
// ConfigError if there are more than 10^9, unless `yes`. Says nothing for other models.
void announce_packets(const OpGraph& graph, const Cluster& cluster,
                      const SimulationOptions& options, bool yes);

}  // namespace stepsim
