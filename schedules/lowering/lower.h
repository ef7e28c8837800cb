// lower() turns a model and a plan into the op graph of one training step: one program a pipeline
// stage, the communicators of the plan's mesh, and where each rank sits.
//
//   workload   build_layers()            what one chip computes for a micro-batch
//   tensor     lower_tensor()            + tensor-parallel collectives  -> steps of a layer
//   pipeline   one_forward_one_backward() the order of micro-batches on each stage
//   stage      lower_stage()             emits the program: the steps in that order, and around
//   them
//                                        messages, FSDP or gradient buckets, the optimizer: stage.h
//                                        lists the files
//
// Everything after this point (simulate, traces) knows neither the model nor the plan.

#pragma once

#include "schedules/plan/parallel_plan.h"
#include "sim/chips/chip_spec.h"
#include "sim/network/places.h"
#include "sim/op_graph.h"
#include "workload/model_spec.h"

namespace stepsim {

// REQUIRES: check(plan, model, places) is empty.
OpGraph lower(const ModelSpec& model, const ParallelPlan& plan, const Places& places,
              const ChipSpec& chip);

}  // namespace stepsim
