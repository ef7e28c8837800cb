// pipeline_times() measures how long the ops of a chunk take under a plan, for schedules that are
// planned by such times (zb_auto_1p, zb_auto_2p, zbv_auto, or messages in planned batches). The
// authors of these schedules profile the first steps of a run and take the median over the ranks.
// Here two micro-batches go through the pipeline one after the other, and the second one is timed:
// its kernels and the collectives that they wait for.
//
//   const PipelineCosts costs = pipeline_times(model, plan, cluster);
//   const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, costs);

#pragma once

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/hardware/cluster.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// Times are in nanoseconds, each at least 1; a send is 0 or more. If the plan's schedule is not
// planned by times, all are 1 and nothing is simulated. Otherwise it costs a simulation of two
// micro-batches on the whole cluster. REQUIRES: check(plan, model, places) is empty.
PipelineCosts pipeline_times(const ModelSpec& model, const ParallelPlan& plan,
                             const Cluster& cluster);

}  // namespace stepsim
