// build_cluster() makes the hardware that a ClusterSpec describes. All throw ConfigError where the
// topology can't be built.

#pragma once

#include "experiment/experiment.h"
#include "sim/hardware/cluster.h"
#include "topology/topology.h"

namespace stepsim {

// Hosts only where they are asked for, so that runs without offload don't carry their links.
Cluster build_cluster(const ClusterSpec& spec, bool with_hosts = false);

// The same around the spec's topology, if it has been built before.
Cluster build_cluster(const ClusterSpec& spec, BuiltTopology built, bool with_hosts);

// The cluster as training steps see it: with hosts if the plan offloads, and with chips at the
// clock that they sustain, less the units that the plan leaves to communication.
Cluster cluster_for_steps(const Experiment& experiment);
Cluster cluster_for_steps(const Experiment& experiment, BuiltTopology built);

}  // namespace stepsim
