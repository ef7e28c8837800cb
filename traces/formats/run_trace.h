// write_run_trace() writes the timelines of a run into a trace.
//
//   process   a recorded rank: "rank 0 (stage 0, tp 0, dp 0)"; the last process holds the links
//   thread    a lane: one stream of the rank. Streams run in order, and communication that overlaps
//             compute stands in a lane of its own
//   slices    of the compute lane: traces/formats/compute_lane.h. Communication is two touching
//   slices:
//             "wait: NAME" from when it was posted to when its last peer came (category "wait"),
//             then NAME while data moved (category tp, dp, pp, ...). The argument launch_wait_us
//             says how long the op waited for its host before
//   arrow     traces/formats/trace_arrows.h
//   counter   traces/formats/trace_counters.h
//
// Times start at 0: start and end are each cut to whole nanoseconds, and a duration is their
// difference, so slices that touch in the simulation touch in the trace.
//
// The readers' needs, found by trying (Perfetto v55.3, scripts/check_trace.sh): a slice that
// overlaps its predecessor in a lane is dropped, and an arrow binds to the slice that began last
// in its lane. So communication of zero length gets an extra lane, "NAME (instants)", where work of
// another op of its lane begins at the same nanosecond, and a wait that would begin there begins a
// nanosecond later. An arrow between ops that only meet inside one nanosecond, its head in a slice
// that ends there, is left out.
//
// Writing is streamed: memory does not grow with the trace, except for some bytes per op.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/energy.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"
#include "traces/formats/compute_lane.h"
#include "traces/formats/trace_sink.h"

namespace stepsim {

// What a trace says beside the run itself.
struct TraceNotes {
  std::vector<std::pair<std::string, std::string>> metadata{};  // of the whole trace
  std::optional<std::int64_t> tokens_per_microbatch{};
  std::optional<KernelEnergy> energy{};  // unset: no watts
  // Called with the share that is written, after each rank. May be empty.
  std::function<void(double share)> progress{};
};

// Does not commit the file of the sink. Throws OutputError if it cannot be written,
// std::logic_error if ops of a stream overlap.
TraceSummary write_run_trace(const OpGraph& graph, const Cluster& cluster,
                             const SimulationResult& result, TraceDetail detail,
                             const TraceNotes& notes, TraceSink& sink);

}  // namespace stepsim
