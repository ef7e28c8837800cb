// Makes a GOAL schedule of an op graph: what read_goal() reads back, and LogGOPSim takes.
//
//   kernels      calc, on cpu 0; a run of kernels is one calc
//   collectives  the sends and receives of their algorithm, round by round, as a stepped run sends
//                them (sim/collectives/algorithm.h): a member sends the message of a round once its
//                message of the round before has left and all messages to it in the rounds before
//                have arrived. An algorithm with switches that add up, which GOAL lacks, gives way
//                to the first that does without.
//   messages     send and recv; the tag tells what they belong to
//   host         calc, on a cpu of its own
//
// What GOAL can't say: what a library adds to each message, kernels that collectives slow down,
// sends that wait for their receives, dependencies on the step before, launches and copies to the
// host.
//
// Cost: O(messages of all collectives).

#pragma once

#include <string>
#include <vector>

#include "import/trace_job.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct GoalExport {
  TraceJob job;                     // without collectives; goal_text() writes it
  std::vector<std::string> losses;  // what the schedule leaves out of this graph
};

// Throws ConfigError if the schedule would have more than 20 million ops.
GoalExport export_goal(const OpGraph& graph, const Cluster& cluster);

}  // namespace stepsim
