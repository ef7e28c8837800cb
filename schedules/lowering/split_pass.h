// lower_split_pass() makes the op graph of a pass of inference whose routed experts are on chips of
// their own (expert_chips.h). There are two programs. The pass is cut into micro-batches, and while
// experts work on one, attention works on others:
//
//   attention   A0 s0 A1 s1 | a0 A0 s0 a1 A1 s1 | a0 ...        A: up to the dispatch
//   experts              E0   E1              E0   E1 ...       s: shared experts   a: behind them
//               layer 0        layer 1
//
// Attention visits the layers one after the other, and in each the micro-batches; so do experts.
// Embedding and head are one run for the whole batch. With m micro-batches, T_a and T_e the times
// of a layer on either kind of chips and T_c that of a dispatch or a combine, nobody waits if
// T_a = T_e and m T_a >= T_a + T_e + 2 T_c (MegaScale-Infer, section 4.1, equations 1 to 3).
//
// Streams of both programs: compute, dispatch and combine; of attention also tp, of experts etp.
// The experts' program is stage 1 of the graph, so that waiting for the other kind of chips is a
// bubble.

#pragma once

#include "schedules/plan/parallel_plan.h"
#include "sim/chips/chip_spec.h"
#include "sim/network/places.h"
#include "sim/program/op_graph.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// REQUIRES: check(plan, model, places) is empty; plan.mesh.splits_ffn(). Linear in the ops, and
// ranks^2 for each size of micro-batches.
OpGraph lower_split_pass(const ModelSpec& model, const ParallelPlan& plan, const Places& places,
                         const ChipSpec& chip);

}  // namespace stepsim
