// fold() finds the ranks of a job that do the same at the same time, so that one of each class is
// simulated and stands for all. docs/folding.md says why that is exact.
//
// It draws a graph (sim/folding/colour_graph.h) of everything that can act on anything else:
//
//   ranks     first colour: program, stage, slowdown
//   groups    of ranks that run collectives; joined to their members, and to the links that these
//             collectives use, with the bytes of each work there
//   messages  from a rank to another one; joined to both and to the links of the route
//   hosts     joined to their ranks
//   links     first colour: bandwidth, and how many share a load (groups of links)
//
// and refines it. The first colour of a group and of a message has all that is scalar: works,
// algorithms, latencies.

#pragma once

#include <optional>
#include <string>

#include "sim/folding/quotient.h"
#include "sim/hardware/cluster.h"
#include "sim/network/fabric.h"
#include "sim/program/op_graph.h"
#include "sim/run/collectives/collective_plan.h"
#include "sim/run/simulation_options.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

struct Fold {
  std::optional<Quotient> quotient{};  // unset: every rank has to be simulated
  FoldStatistics statistics{};
};

// Cost: O(members of groups + different edges of their algorithms x links of a route), and O(E log
// V) for the refinement. `plans`: of the same graph, cluster and options.
Fold fold(const OpGraph& graph, const Cluster& cluster, const SimulationOptions& options,
          CollectivePlans& plans);

// Returns a fabric of one link for each class. A class of groups of links has one link of the
// bandwidth of the average link.
Fabric folded_fabric(const Fabric& fabric, const Classes<LinkId>& links);

}  // namespace stepsim
