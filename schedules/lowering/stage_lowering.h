// lower_stage() writes the program of one pipeline stage: the order of the pipeline schedule, each
// pass unrolled into the steps of the stage's layers, and around them what the plan asks for.
//
// Streams of the program (only those that are needed):
//
//   compute                      kernels, one run after another
//   tp                           collectives that compute waits for
//   tp regather                  inputs gathered again beside the backward pass
//   receive/send activation      messages (pipeline.h)
//   receive/send gradient
//   dp gradients, dp parameters  whole replicas (data_parallel.h)
//   fsdp gather, fsdp reduce     divided parameters (fully_sharded.h)
//
// A compute step waits for the tensor collective before it, for its layer's parameters under FSDP,
// and the first one of a pass for the message of the neighbouring stage. Activations are kept from
// the forward to the end of the backward step that reads them; workspaces live while their step
// runs.

#pragma once

#include <vector>

#include "schedules/lowering/stage.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

Program lower_stage(Stage stage, const std::vector<PipelineOp>& order, Bytes fixed_memory);

}  // namespace stepsim
