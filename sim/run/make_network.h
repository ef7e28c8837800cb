// make_network() builds the network model that the options of a run choose.

#pragma once

#include <memory>

#include "sim/hardware/cluster.h"
#include "sim/network/network.h"
#include "sim/run/simulation_options.h"

namespace stepsim {

// `fabric`: the cluster's, or that of a folded job. Throws std::logic_error for packets with
// pipelined collectives.
std::unique_ptr<Network> make_network(const Cluster& cluster, const Fabric& fabric,
                                      const SimulationOptions& options);

}  // namespace stepsim
