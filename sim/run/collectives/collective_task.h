// task_of() returns what each group of a communicator does: a collective work of the op graph with
// its tables looked up.

#pragma once

#include "sim/collectives/algorithm.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// The task refers to tables of the graph, which must outlive it. Throws std::range_error if a
// member has more than kMostCollectiveBytes.
CollectiveTask task_of(const OpGraph& graph, const CollectiveWork& work);

}  // namespace stepsim
