// The compute lane of a rank in a trace, from the outside in:
//
//   pass    "F 3", "B 3", "W 3", "F 7 + B 3": compute ops of one pass, and the waits between them
//   layer   "layer 17: block forward": ops of one layer and phase
//   kernel  "qkv_projection": the kernels of an op, whose times follow the chip's model of each and
//           add up to the op's time
//   idle    "waits for gradient of micro-batch 3 from rank 24": an interval in which the lane
//           stands still, wherever that is; category "idle", with the cause that the breakdown
//           counts it under
//
// Arguments compute_ps of kernels (or of the innermost slices that are shown) and idle_ps of waits
// are exact: over a lane they add up to the run. What is shorter than a nanosecond is an instant,
// or counts in the next kernel.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"
#include "traces/formats/trace_arrows.h"
#include "traces/formats/trace_lanes.h"
#include "traces/formats/trace_sink.h"

namespace stepsim {

enum class TraceDetail : std::uint8_t { kPass, kLayer, kKernel };
inline constexpr std::size_t kTraceDetails = 3;
std::string_view name_of(TraceDetail detail);  // "pass"

// A recorded rank. Its timeline may be one that several ranks share.
struct TracedRank {
  const OpGraph& graph;
  const Cluster& cluster;
  const SimulationResult& result;
  RankId rank;
  const Timeline& timeline;
  const RankLayout& layout;
  const RankArrows& arrows;
  const std::vector<std::string>& axes;  // the names, by Axis
  const std::vector<bool>& critical;     // by entry: whether it is on the critical path
};

// KernelShares says which part of a run of kernels each of them takes by the chip's model. Each
// work is looked up once for all ranks.
class KernelShares {
 public:
  struct Share {
    Duration until{};  // of the sum over the kernels of the work
    bool memory_bound = false;
  };

  // All must outlive the object.
  KernelShares(const OpGraph& graph, const Cluster& cluster);

  // Returns when kernel i ends in a run that takes `whole`, after its start.
  static Duration end_of(const std::vector<Share>& shares, std::size_t i, Duration whole);

  // By kernel. Kernels that all take no time have equal parts.
  const std::vector<Share>& of(std::uint32_t work);

 private:
  const OpGraph& graph_;
  const ChipSpec& chip_;
  std::vector<std::vector<Share>> shares_;  // by work; empty until it is asked for
};

void write_compute_lane(const TracedRank& rank, TraceDetail detail, KernelShares& shares,
                        TraceSink& sink);

// Returns what a wait says: "waits for gradient of micro-batch 3 from rank 24", and the part of the
// breakdown that it belongs to: "exposed tp", "bubble", "idle", "launch".
std::string text_of(const TimelineWait& wait, const TracedRank& rank);
std::string part_of_breakdown(const TimelineWait& wait, const OpGraph& graph, RankId rank);

}  // namespace stepsim
