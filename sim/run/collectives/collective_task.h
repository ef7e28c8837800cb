// task_of() returns the task of one group of a communicator: a collective work of the op graph with
// its tables looked up.

#pragma once

#include "sim/base/ids.h"
#include "sim/collectives/algorithm.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// The task refers to tables of the graph, which must outlive it. Throws std::range_error if a
// member has more than kMostCollectiveBytes.
CollectiveTask task_of(const OpGraph& graph, const CollectiveWork& work, GroupId group);

}  // namespace stepsim
