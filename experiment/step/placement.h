// placement_notes() reports where a plan's placement slows its communicators: groups that leave the
// fastest links though they would fit on them, and groups that fill only part of a torus axis and
// so form a line where a whole axis would be a ring.
//
// It looks only at tensor, context and expert groups, because their collectives stand between
// compute ops. Gradients and pipeline messages are expected to travel far.

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

// Returns at most one note per axis for each of the two cases. O(ranks x route).
std::vector<PlacementNote> placement_notes(const OpGraph& graph, const Cluster& cluster,
                                           const SimulationResult& result);

}  // namespace stepsim
