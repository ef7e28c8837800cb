// Zero-bubble schedules with a fixed order (Qi et al., arXiv 2401.10241). The backward is split in
// two: the gradient of the input, which the next rank waits for, and the gradient of the weights.
// Nothing in the pipeline waits for the latter, so it fills idle time. f, b, w are the times of
// forward, input gradient and weight gradient; L is a send.
//
//   rank 0  F0 F1 F2 .. .. B0 W0 F3 B1 W1 F4 B2 W2 ...          ZB-H1, 3 stages
//   rank 1  .. F0 F1 .. B0 F2 B1 W0 F3 B2 W1 F4 ...
//   rank 2  .. .. F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 ...
//
// zb_h1  rank r runs P - 1 - r forwards first and its weight gradients r backwards late. Bubble
//        (P - 1)(f + b - w) for w <= min(f, b); P micro-batches in flight on every rank.
// zb_h2  twice as many forwards first and weight gradients twice as late. The bubble between a
//        rank's first start and its last end is (P - 1)(f + b + 2 L - 2 w), none for f = b = w;
//        2 P - 1 micro-batches in flight on every rank. From the first start of all to the last end
//        of all (P - 1) f more: an optimizer step that waits for every rank pays it.
// zb_h1_quickstart
//        the patch of some forty lines by the same authors: like 1F1B, weight gradients are split
//        off only where they are needed. The bubble of zb_h1; any M >= 1.
//
// zb_h1 and zb_h2 need M >= 2 P, as the authors' generator does.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES (here and below): stages >= 1, microbatches as above.
PipelineSchedule zb_h1(std::int32_t stages, std::int32_t microbatches);
PipelineSchedule zb_h2(std::int32_t stages, std::int32_t microbatches);
PipelineSchedule zb_h1_quickstart(std::int32_t stages, std::int32_t microbatches);

// Return the published bubbles (bubble.h).
BubbleFormula zb_h1_bubble(const BubbleNumbers& n);
BubbleFormula zb_h2_bubble(const BubbleNumbers& n);

}  // namespace stepsim
