// Summaries of a run: means over ranks, totals of links, the parts of the critical path. Each takes
// what the books hold and returns a part of SimulationResult.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/network/network.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/transport.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// Mean over all ranks and `steps`. Parts are whole picoseconds and add up to `step_time`: what
// rounding down loses goes to the largest part.
Breakdown mean_breakdown(const std::vector<Breakdown>& of_ranks, std::int64_t steps,
                         Duration step_time);

// The critical path of one step, largest part first. `parts`: picoseconds of `steps` steps, by
// label of the graph's path and then by axis. Parts add up to `step_time`, as above.
std::vector<PathPart> path_of_step(const OpGraph& graph, const std::vector<std::int64_t>& parts,
                                   std::int64_t steps, Duration step_time);

// Lowest rank of the largest peak.
RankId peak_rank(const std::vector<MemoryPeak>& peaks);

// Every link's data and utilization from the start to `end`. `sprayed`: packets took other links
// than those that were routed, so all that a link carried counts as data.
std::vector<LinkTotal> link_totals(const Cluster& cluster, const Network& network,
                                   const Transport& transport, bool sprayed, Time end);

}  // namespace stepsim
