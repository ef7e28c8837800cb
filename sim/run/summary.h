// Summaries of a run: means over ranks, totals of links, the parts of the critical path. Each
// function takes the records of a run and returns a part of SimulationResult.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/network/network.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/transport.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// Returns the mean over all ranks and `steps`. Parts are whole picoseconds and add up to
// `step_time`: the picoseconds lost by rounding down go to the largest part.
Breakdown mean_breakdown(const std::vector<Breakdown>& of_ranks, std::int64_t steps,
                         Duration step_time);

// Returns the critical path of one step, largest part first. `parts`: times in `steps` steps,
// by label of the graph's path and then by axis. Parts add up to `step_time`, as above.
std::vector<PathPart> path_of_step(const OpGraph& graph, const std::vector<Duration>& parts,
                                   std::int64_t steps, Duration step_time);

// Returns the lowest rank with the largest peak.
RankId peak_rank(const std::vector<MemoryPeak>& peaks);

// Returns every link's data and utilization from the start to `end`. `sprayed`: packets took other
// links than those of the routes, so all bytes on a link count as data.
std::vector<LinkTotal> link_totals(const Cluster& cluster, const Network& network,
                                   const Transport& transport, bool sprayed, Time end);

}  // namespace stepsim
