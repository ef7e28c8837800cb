// critical_ops() finds the ops of the critical path of a run among its recorded timelines: the
// longest chain of causes, back from the op that ended last. An op that waited for others goes on
// because of the last of them (SimulationResult::flows); otherwise it started when the op before it
// in its stream, or one that it depends on, ended. These are the causes whose times
// SimulationResult::critical_path adds up.
//
// The chain ends early where it leads to a rank that is not recorded, or to the host.

#pragma once

#include <vector>

#include "sim/base/units.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

struct CriticalOps {
  std::vector<std::vector<bool>> on_path;  // by timeline and entry
  Time from;                               // the path is known from then to the end
};

// O(ops of the timelines x log of them).
CriticalOps critical_ops(const OpGraph& graph, const SimulationResult& result);

}  // namespace stepsim
