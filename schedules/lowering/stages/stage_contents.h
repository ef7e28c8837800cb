// What a pipeline rank holds: the layers of its chunks, and tables that it shares with others.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/lowering/stages/stage.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// Returns the first block of each global stage, and the number of all blocks.
std::vector<std::int32_t> first_blocks(const ModelSpec& model, const ParallelPlan& plan,
                                       const PipelineSchedule& schedule);

// Sets the chunks of a stage, the weights that it shares, and weights and cache of a pass of
// inference. Cost: linear in its layers and in the stages of the pipeline. REQUIRES: plan,
// schedule and number are set; of the schedule only the number of ranks, the chunks and the
// placement are read. `lowered` outlives the stage.
void fill_stage(const ModelSpec& model, const LoweredModel& lowered, Stage& stage);

}  // namespace stepsim
