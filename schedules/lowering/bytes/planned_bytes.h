// planned_bytes() is the closed form of the bytes that all ranks send in one step, by axis. It is
// derived from the plan alone, not from the op graph. A run compares it with the bytes that
// simulate() sent.
//
//   tp   a block and micro-batch: 10 (tp - 1) boundary a tensor group with sequence parallelism
//        (all-gather and reduce-scatter of N bytes move (n - 1) N in a group of n), 8 without, as
//        the regions of its ops say; embedding and head likewise; full recompute repeats the
//        forward's 4, other recompute what recomputed_ops() says
//        With sequence parallelism also 2 (tp - 1) g a parameter of the S region (norms), once
//   dp   a stage and tensor coordinate, with P parameters, g gradient and w weight bytes, n = cp x
//        dp replicas and m micro-batches: ZeRO-0 2 (n - 1) P g; ZeRO-1 (n - 1) P (g + w); ZeRO-2
//        (n - 1) P (m g + w); FSDP (n - 1) P m (2 w + g), or (n - 1) P (w + m g) if the parameters
//        stay gathered; where several blocks run again together, all but the last are gathered a
//        third time. Hybrid sharding over s of n = r s: those with s for n, r times, and
//        2 (r - 1) P g. Routed experts likewise, with edp for n
//   cp, ep   context.h and expert.h
//   other  the norm of gradients, 2 (n - 1) 4 bytes
//        Two copies of each stage: n = 2 cp dp, each rank has P of two stages
//   pp   2 S micro-batches x boundary (divided by tp with sequence parallelism) a chain, S = stages
//        of the pipeline - 1, less those boundaries where both stages are on one rank

#pragma once

#include <array>
#include <vector>

#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/program/op_graph.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

std::array<Bytes, kMostAxes> planned_bytes(const ModelSpec& model, const ParallelPlan& plan,
                                           const LoweredModel& lowered,
                                           const ExpertExchange& exchange);

// A micro-batch of a pass whose experts are on chips of their own. The plan has its requests.
struct PlannedMicrobatch {
  const ParallelPlan& plan;
  const ModelLayers& layers;
};

// Likewise for such a pass. `whole` and `ends`: plan and layers of the whole batch, of which only
// embedding and head are run.
std::array<Bytes, kMostAxes> planned_bytes_of_split(
    const ParallelPlan& whole, const ModelLayers& ends,
    const std::vector<PlannedMicrobatch>& microbatches);

}  // namespace stepsim
