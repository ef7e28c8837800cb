// build_cluster() makes the hardware that a ClusterSpec describes. All functions throw ConfigError
// if the topology cannot be built.

#pragma once

#include "experiment/experiment.h"
#include "sim/hardware/cluster.h"
#include "topology/topology.h"

namespace stepsim {

// Adds hosts only if `with_hosts`, so that runs without offload don't carry their links.
Cluster build_cluster(const ClusterSpec& spec, bool with_hosts = false);

// The same with the spec's topology if it has been built before.
Cluster build_cluster(const ClusterSpec& spec, BuiltTopology built, bool with_hosts);

// Returns the cluster for training steps: with hosts if the plan offloads, with chips at their
// sustained clock, and without the units that the plan leaves to communication.
Cluster cluster_for_steps(const Experiment& experiment);
Cluster cluster_for_steps(const Experiment& experiment, BuiltTopology built);

}  // namespace stepsim
