// The links of a cluster that its faults slow or take away, for reports: the cluster of a run has
// no longer those that are down.

#pragma once

#include <vector>

#include "experiment/experiment.h"
#include "sim/network/fabric.h"

namespace stepsim {

struct DamagedEnds {
  NodeId from;
  NodeId to;
  double capacity = 0;  // remaining share of its bandwidth; 0: down
};

// One-way links in order. Builds the whole topology where there are faults. REQUIRES: the cluster
// can be built.
std::vector<DamagedEnds> damaged_ends(const ClusterSpec& cluster);

}  // namespace stepsim
