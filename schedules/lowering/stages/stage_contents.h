// What a pipeline rank holds: the layers of its chunks, and tables that it shares with others.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/lowering/stages/stage.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// Returns the first block of each global stage, and the number of all blocks. `layers`: those of
// the stages.
std::vector<std::int32_t> first_blocks(const std::vector<std::int64_t>& layers);

// Sets the chunks of a stage, the weights that it shares, and weights and cache of a pass of
// inference. Cost: linear in its layers and in the stages of the pipeline. REQUIRES: plan,
// schedule and number are set; of the schedule only the number of ranks, the chunks and the
// placement are read. `lowered` outlives the stage.
void fill_stage(const ModelSpec& model, const LoweredModel& lowered, Stage& stage);

}  // namespace stepsim
