// The check before a run on the packet network: how large it is, and whether that is wanted.

#pragma once

#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"

namespace stepsim {

// Says on standard error how many packet-hops the run has and how long that takes, roughly. Throws
// ConfigError if there are more than 10^9, unless `yes`. Nothing to say with other models.
void announce_packets(const OpGraph& graph, const Cluster& cluster,
                      const SimulationOptions& options, bool yes);

}  // namespace stepsim
