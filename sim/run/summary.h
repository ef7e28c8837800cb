// Summaries of a run: means over ranks, totals of links, the parts of the critical path. Each
// function takes the records of a run and returns a part of SimulationResult.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/network/network.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/compute_runs.h"
#include "sim/run/ops/critical_path.h"
#include "sim/run/ops/job.h"
#include "sim/run/ops/streams.h"
#include "sim/run/ops/transport.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// Returns the mean over all ranks and `steps`. Parts are whole picoseconds and add up to
// `step_time`: the picoseconds lost by rounding down go to the largest part. `of_ranks`: by
// simulated rank.
Breakdown mean_breakdown(const Job& job, const std::vector<Breakdown>& of_ranks, std::int64_t steps,
                         Duration step_time);

// Returns the same for each rank of the graph. `of_ranks`: by simulated rank.
template <typename Thing>
std::vector<Thing> of_all_ranks(const Job& job, const std::vector<Thing>& of_ranks) {
  std::vector<Thing> all;
  all.reserve(job.graph().ranks.size());
  for (std::uint32_t rank = 0; rank < job.graph().ranks.size(); ++rank) {
    all.push_back(of_ranks[job.simulated(RankId(rank)).index()]);
  }
  return all;
}

// Returns the FLOPs of every kernel of every rank in one step. O(ops of all programs).
Flops flops_of_step(const OpGraph& graph, const ComputeRuns& compute);

// Returns the stream with the op that ended last; of equals that of the lowest stage, program and
// op, and then the path that comes first in CriticalPath::compare_ended().
RankStreamId last_stream(const Job& job, const Streams& streams, const CriticalPath& path,
                         Time end);

// Returns the critical path of one step, largest part first. `parts`: times in `steps` steps,
// by label of the graph's path and then by axis. Parts add up to `step_time`, as above.
std::vector<PathPart> path_of_step(const OpGraph& graph, const std::vector<Duration>& parts,
                                   std::int64_t steps, Duration step_time);

// Returns the lowest rank with the largest peak.
RankId peak_rank(const std::vector<MemoryPeak>& peaks);

// Returns every link's data and utilization from the start to `end`, as they were routed. O(links).
std::vector<LinkTotal> link_totals(const Cluster& cluster, const Transport& transport,
                                   const Quotient* quotient, Time end);

// Returns the same of packets, which choose among the links of a group by their queues.
std::vector<LinkTotal> packet_totals(const Cluster& cluster, const Transport& transport,
                                     const Network& network, Time end);

// Returns the same where packets took other links than those of the routes. All bytes on a link
// count as data.
std::vector<LinkTotal> sprayed_totals(const Fabric& fabric, const Network& network, Time end);

}  // namespace stepsim
