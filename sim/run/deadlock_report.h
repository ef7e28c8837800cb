// deadlock_report() explains why nothing can happen any more. It lists every rank that still has an
// op to run, what that op waits for, and a cycle among the waits if there is one.

#pragma once

#include <string>

#include "sim/program/op_graph.h"
#include "sim/run/collectives/collective_runs.h"
#include "sim/run/ops/channels.h"
#include "sim/run/ops/launches.h"
#include "sim/run/ops/streams.h"

namespace stepsim {

// REQUIRES: nothing can happen any more, and some stream is not finished. Lists at most
// `most_lines` waits and says how many more there are. Asks streams again whether they are ready.
// `launches`: nullptr if hosts launch at no cost.
std::string deadlock_report(const OpGraph& graph, Streams& streams, const Channels& channels,
                            const CollectiveRuns& collectives, const Launches* launches,
                            std::size_t most_lines = 1000);

}  // namespace stepsim
