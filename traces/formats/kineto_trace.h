// write_kineto_trace() writes one recorded rank as PyTorch's profiler writes it, for what reads
// that: Holistic Trace Analysis, TensorBoard, importers. One file a rank.
//
//   pid 0          the GPU: a stream a lane, compute is stream 7 as in PyTorch. Kernels (category
//                  `kernel`) by their own names, copies to and from the host (`gpu_memcpy`)
//   pid 1000       the host: a launch of each kernel (`cuda_runtime`), joined by `correlation` and
//                  an arrow `ac2g`, and ProfilerStep#k
//   collectives    ncclDevKernel_AllGather_RING_LL128 ..., from when they were posted to their end,
//                  so with the wait for the slowest member, as NCCL's are; messages are
//                  ncclDevKernel_SendRecv. With the arguments that NCCL's logger adds
//   distributedInfo  the rank, the world, and its process groups
//
// A launch stands where its kernel starts and takes no time: hosts are not simulated by themselves.
// Times are microseconds with three decimals from baseTimeNanoseconds = 0.

#pragma once

#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"
#include "traces/files/output_file.h"

namespace stepsim {

// `recorded`: a number in SimulationResult::recorded. Does not commit `out`. Throws OutputError if
// it cannot be written.
void write_kineto_trace(const OpGraph& graph, const Cluster& cluster,
                        const SimulationResult& result, std::size_t recorded, OutputFile& out);

}  // namespace stepsim
