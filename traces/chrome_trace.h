// write_chrome_trace() writes the timelines of a run as Chrome trace JSON, for ui.perfetto.dev,
// speedscope and everything else that reads the format.
//
//   process   a recorded rank: "rank 0 (stage 0, tp 0, dp 0)"; the last process holds the links
//   thread    a lane: one stream of the rank. Streams run in order, so slices of a lane touch at
//             most, and communication that overlaps compute stands in a lane of its own
//   slice     what an op did. Communication is two touching slices: "wait: NAME" from when it was
//             posted to when its last peer came (category "wait"), then NAME while data moved
//             (category tp, dp, pp, ...). Compute is one slice (category "compute"). The argument
//             launch_wait_us says how long the op waited for its host before
//   arrow     from a send to its receive, from the last member of a collective to the others
//   counter   memory by category; utilization of links, in percent
//
// Times start at 0 and are microseconds with three decimals: start and end are each cut to whole
// nanoseconds, and a duration is their difference, so slices that touch in the simulation touch in
// the trace. Printed from integers, never through a double.
//
// The readers' needs, found by trying (Perfetto v55.3, scripts/check_trace.sh): a slice that
// overlaps its predecessor in a lane is dropped, and an arrow binds to the slice that began last
// in its lane. So a slice of zero length gets an extra lane, "NAME (instants)", where work of
// another op of its lane begins at the same nanosecond; a wait that would begin there begins a
// nanosecond later; and no slice is nested in another. An arrow between ops that only meet inside
// one nanosecond, its head in a slice that ends there, is left out.
//
// Writing is streamed: memory does not grow with the trace, except for 4 bytes per op.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"
#include "traces/output_file.h"

namespace stepsim {

inline constexpr std::size_t kBusiestTracedLinks = 10;
inline constexpr std::size_t kMostTraceBins = 2000;

// TraceSummary counts what was written, so that it can be compared with what a reader finds.
struct TraceSummary {
  std::uint64_t slices = 0;
  std::uint64_t arrows = 0;
  std::uint64_t counter_samples = 0;
};

// Does not commit `out`. Throws OutputError if `out` cannot be written, std::logic_error if ops of
// a stream overlap.
TraceSummary write_chrome_trace(const OpGraph& graph, const Cluster& cluster,
                                const SimulationResult& result, OutputFile& out);

// Returns the links whose counters a trace shows, ascending: those at the chips of the recorded
// ranks and the ten busiest. Links that carried nothing or were not recorded are left out.
std::vector<LinkId> traced_links(const OpGraph& graph, const Cluster& cluster,
                                 const SimulationResult& result);

// Returns at most `count` links that carried anything, highest utilization first (ties: lowest id).
std::vector<LinkTotal> busiest_links(const SimulationResult& result, std::size_t count);

}  // namespace stepsim
