// lower() turns a model and a plan into the op graph of one training step: one program per pipeline
// rank, the communicators of the plan's mesh, and the place of each rank.
//
//   workload   build_layers()            what one chip computes for a micro-batch
//   tensor     lower_tensor()            + tensor-parallel collectives  -> steps of a layer
//   pipeline   schedule_of()             the order of micro-batches and chunks on each rank
//   stage      lower_stage()             emits the program: the steps in that order, around them
//                                        messages, FSDP or gradient buckets, the optimizer: stage.h
//                                        lists the files
//
// A pass of inference whose experts are on chips of their own has two programs that take turns:
// split_pass.h.
//
// Everything after this point (simulate, traces) knows neither the model nor the plan.

#pragma once

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/chips/chip_spec.h"
#include "sim/network/places.h"
#include "sim/program/op_graph.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// `costs` are the times of a chunk's ops, for schedules that are planned by time. They come from
// pipeline_times() (experiment/pipeline_times.h); simulate_experiment() passes them on. REQUIRES:
// check(plan, model, places) is empty.
OpGraph lower(const ModelSpec& model, const ParallelPlan& plan, const Places& places,
              const ChipSpec& chip, const PipelineCosts& costs);

}  // namespace stepsim
