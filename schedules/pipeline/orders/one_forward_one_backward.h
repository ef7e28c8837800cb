// 1F1B, also called PipeDream-flush (Narayanan et al., arXiv 2006.09503) and DAPPLE (Fan et al.,
// arXiv 2007.01045): after a warm-up of forwards each rank alternates one forward and one backward.
//
//   rank 0  F0 F1 F2 F3 .. .. .. B0 F4 B1 F5 B2 ...        4 stages
//   rank 1  .. F0 F1 F2 .. .. B0 F3 B1 F4 B2 ...
//   rank 2  .. .. F0 F1 .. B0 F2 B1 F3 B2 ...
//   rank 3  .. .. .. F0 B0 F1 B1 F2 B2 ...
//
// Rank r of P runs min(P - 1 - r, M) forwards first. Then it alternates forward and backward, and
// finally runs the remaining backwards. The bubble is (P - 1)(T_F + T_B) when sending is free,
// which is (P - 1)/(M + P - 1) of the whole. At most min(P - r, M) micro-batches are in flight on
// rank r. Any M >= 1 is allowed. With a send time L the bubble grows with M: only P - r are in
// flight, so one round trip of 2(P - 1) sends delays P micro-batches.
//
// Eager 1F1B (Zhuang et al., arXiv 2211.05322, "overlap-friendly" in Alpa) runs min(2(P - 1 - r),
// M) forwards first. Its bubble is (P - 1)(T_F + T_B + 2 L) for any M, and min(2(P - r) - 1, M)
// micro-batches are in flight.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES (here and below): stages >= 1, microbatches >= 1.
PipelineSchedule one_forward_one_backward(std::int32_t stages, std::int32_t microbatches);
PipelineSchedule eager_one_forward_one_backward(std::int32_t stages, std::int32_t microbatches);

// Return the published bubbles (bubble.h).
BubbleFormula one_forward_one_backward_bubble(const BubbleNumbers& n);
BubbleFormula eager_one_forward_one_backward_bubble(const BubbleNumbers& n);

}  // namespace stepsim
