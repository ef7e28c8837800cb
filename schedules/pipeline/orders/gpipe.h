// GPipe (Huang et al., arXiv 1811.06965): all forwards, then all backwards.
//
//   rank 0  F0 F1 F2 F3 .. .. .. .. .. BW0 BW1 BW2 BW3       gpipe, 3 stages, 4 micro-batches
//   rank 1  .. F0 F1 F2 F3 .. .. BW0 BW1 BW2 BW3 ..          (a BW drawn as short as an F)
//   rank 2  .. .. F0 F1 F2 F3 BW0 BW1 BW2 BW3 .. ..
//
// gpipe       backwards in the order of forwards (PyTorch's ScheduleGPipe)
// gpipe_lifo  backwards in reverse (figure 2c of the paper)
//
// The bubble is (P - 1)(T_F + T_B + 2 L) with full backwards T_B. That is (P - 1)/M of the work and
// (P - 1)/(M + P - 1) of the whole. M micro-batches are in flight on every rank (GPipe itself
// recomputes activations). With equal costs the two orders take equally long but finish gradients
// in different order. Any M >= 1 is allowed.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES (here and below): stages >= 1, microbatches >= 1.
PipelineSchedule gpipe(std::int32_t stages, std::int32_t microbatches);
PipelineSchedule gpipe_lifo(std::int32_t stages, std::int32_t microbatches);

// Returns the published bubble (bubble.h).
BubbleFormula gpipe_bubble(const BubbleNumbers& n);

}  // namespace stepsim
