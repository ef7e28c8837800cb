// Copies of a cluster that are slower or faster, for laws about time. Each takes a freshly built
// cluster, as a router cannot be copied.

#pragma once

#include "sim/base/ids.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// Makes all of it `slower` times as slow: bandwidths, throughputs, latencies, and what the library
// adds.
Cluster slowed(Cluster cluster, int slower);

// Makes one link twice as fast.
Cluster with_faster_link(Cluster cluster, LinkId link);

// Adds `more` to the latency of every link.
Cluster with_longer_links(Cluster cluster, Duration more);

// Takes the library away, so that links alone count.
Cluster with_ideal_library(Cluster cluster);

}  // namespace stepsim
