// fused_neighbours() joins each backward with the next forward of its rank, if that belongs to
// another micro-batch, into one op like DualPipe's: one sends while the other computes
// (Megatron-Core: 1F1B overlap of expert-parallel communication,
// --overlap-moe-expert-parallel-comm).
//
//   1F1B, one stage   F0 BW0 F1 BW1 F2 BW2   becomes   F0 FB1/0 FB2/1 BW2
//
// The activations of the forward arrive while those of the backward leave. Between stages a fused
// op hands on the results of both parts at its end. In schedules with just enough micro-batches in
// flight (1f1b) ranks then wait for one another. With twice as many (eager_1f1b, interleaved_1f1b)
// they don't. Split backwards stay as they are.

#pragma once

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

PipelineSchedule fused_neighbours(PipelineSchedule schedule);

bool has_fused_ops(const PipelineSchedule& schedule);

}  // namespace stepsim
