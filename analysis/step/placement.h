// placement_notes() says where a plan's placement makes its communicators pay: groups that should
// stay on the fastest links and leave them, and groups that fill a part of a torus axis and so are
// lines where a whole axis would be a ring.
//
// Only tensor, context and expert groups are looked at: their collectives stand between compute
// ops. Gradients and pipeline messages are expected to travel far.

#pragma once

#include <string>
#include <vector>

#include "schedules/plan/axis.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

struct PlacementNote {
  Axis axis = Axis::kOther;
  std::string text;  // "tp spans 2 nodes: ..."
};

// One note an axis at most for each of the two. O(ranks x route).
std::vector<PlacementNote> placement_notes(const OpGraph& graph, const Cluster& cluster,
                                           const SimulationResult& result);

}  // namespace stepsim
