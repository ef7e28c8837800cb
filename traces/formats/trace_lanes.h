// trace_lanes decides which slices of a recorded rank a trace shows, and in which lane (thread) of
// the rank's process each of them stands.
//
// A stream has one lane. If several communication ops of it begin to move data at one nanosecond
// (all but the last have zero length), all but one get extra lanes: "NAME (instants)", "NAME
// (instants 2)" and so on. A wait that begins where a slice of zero length stands is drawn one
// nanosecond later. So no two slices of a lane begin together. run_trace.h gives the reason.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"
#include "traces/formats/trace_sink.h"

namespace stepsim {

// Returns whole nanoseconds, rounded down. REQUIRES: not negative, like all simulated times.
inline std::int64_t nanoseconds(Time time) {
  return time.since_start.count() / 1000;
}

// Returns the time in which the op itself worked: it computed, or moved data.
Span work_span(const TimelineOp& entry, OpKind kind);

// Returns the time in which the op was posted but no data moved. Empty for compute.
Span wait_span(const TimelineOp& entry, OpKind kind);

struct TraceLane {
  std::uint32_t thread = 0;
  std::string name;
};

// RankLayout says where the slices of one recorded rank go. The first lane of a stream has all its
// slices with a length. Instants have extra lanes only if several begin in the same nanosecond.
struct RankLayout {
  std::uint32_t process = 0;
  std::vector<std::uint32_t> stream_of_op;    // by op of the rank's program
  std::vector<std::vector<TraceLane>> lanes;  // by stream
  std::vector<std::uint32_t> lane_of;         // by entry of the timeline: its work's lane
  std::vector<bool> waits_late;  // by entry: whether an instant stands where its wait begins

  std::uint32_t main_thread(std::uint32_t op) const { return lanes[stream_of_op[op]][0].thread; }
  std::uint32_t thread_of(std::size_t entry, std::uint32_t op) const {
    return lanes[stream_of_op[op]][lane_of[entry]].thread;
  }
};

// Trace readers reserve process 0.
inline std::uint32_t process_of(RankId rank) {
  return rank.index() + 1;
}

// `next_thread` is the first free thread number, and is advanced. The compute lane gets the number
// of the process, because readers show that "main thread" on top. Throws std::logic_error if ops of
// a stream overlap.
RankLayout lay_out(const OpGraph& graph, RankId rank, const Timeline& timeline,
                   std::uint32_t& next_thread);

}  // namespace stepsim
