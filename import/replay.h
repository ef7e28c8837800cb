// replay() makes an op graph of the work of a trace, which simulate() runs on any cluster: kernels
// take the times of the trace, or what the chip's peaks make of their FLOPs and bytes; what
// collectives, sends and receives take is simulated.
//
//   const OpGraph graph = replay(job, {.chip = &cluster.chip});
//   simulate(graph, cluster, {});
//
// Rank r sits on chip r. Streams of a rank: its main lane (the one whose kernels take longest),
// `host` (nodes that are no kernels), one for each other lane, each group and each peer. Ops of a
// stream run in the order of the trace's dependencies, of several that are free the first in the
// file. Collectives of one lane follow one another; without a lane only those of one group do.
// Sends don't wait for their receives unless `rendezvous` says so. A collective of one rank, or of
// one that sends to itself, takes no time.
//
// Cost: O(nodes x log + dependencies x streams of a rank).

#pragma once

#include <functional>
#include <optional>

#include "import/trace_job.h"
#include "sim/chips/chip_spec.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct ReplayOptions {
  const ChipSpec* chip = nullptr;  // what kernels without a time run on; required
  bool retimed = false;  // kernels with FLOPs or bytes take the chip's time, not their own
  // Sends wait for their receives, as large ones of MPI and all of NCCL do. Ranks that then wait
  // for one another are a DeadlockError of simulate().
  bool rendezvous = false;
  // What a collective takes once all its members are there, in place of a simulation of it. Empty:
  // they are simulated. With it all collectives of a rank follow one another.
  std::function<Duration(const TraceNode&, std::uint32_t members)> collective_time{};
};

// Axes of the graph: collectives, messages, host.
// Throws ConfigError for nodes that wait for one another, groups without the rank, and peers that
// don't exist. REQUIRES: dependencies are positions of nodes.
OpGraph replay(const TraceJob& job, const ReplayOptions& options);

// Returns the nodes in an order that their dependencies allow: of those that are free, the first of
// the file. Shorter than all nodes if some wait for one another.
std::vector<std::uint32_t> order_of(const TraceRank& rank);

// Returns the time of a kernel by the chip's peaks: max(FLOPs / peak, bytes / bandwidth). The peak
// is that of bf16, or of fp32 on a chip without bf16.
Duration roofline(Flops flops, Bytes bytes, const ChipSpec& chip);

}  // namespace stepsim
