// Pipelines without overlap: the baselines that every schedule is measured against.
//
//   rank 0  F0 .. .. .. .. .. BW0            naive, 4 stages: one batch
//   rank 1  .. F0 .. .. .. BW0 ..
//   rank 2  .. .. F0 .. BW0 .. ..
//   rank 3  .. .. .. F0BW0 .. ..
//
// naive             one micro-batch through all stages and back. Bubble (P - 1)(T_F + T_B + 2 L):
//                   a rank works 1/P of the time. M = 1 only.
// naive_sequential  M micro-batches, the next one enters when the previous one's backward has left
//                   rank 0 (gradient accumulation without overlap). M times as long. Any M >= 1.
//
// One micro-batch in flight on every rank. T_B is the full backward. Source: definition.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES (here and below): stages >= 1, microbatches >= 1.
PipelineSchedule naive_sequential(std::int32_t stages, std::int32_t microbatches);
PipelineSchedule naive(std::int32_t stages);

// Returns the published bubble (bubble.h).
BubbleFormula naive_bubble(const BubbleNumbers& n);

}  // namespace stepsim
