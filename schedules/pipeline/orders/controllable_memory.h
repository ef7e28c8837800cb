// V-Half and V-Min (Qi et al., "Pipeline parallelism with controllable memory", arXiv 2405.15362):
// schedules that trade bubble for memory. Every rank holds two chunks laid out as a V; a pattern of
// four slots (F and B of both chunks) is repeated every six slots, so that a micro-batch lives for
// a time that is about the same on all ranks. ' marks chunk 1.
//
//   slot    0   1   2   3   4   5   6   7   8   9  10  11  12  13  14
//   rank 0  F0  .   .   F0' B0' .   F1  B0  .   F1' B1' .   F2  B1  .       V-Min, 2 stages,
//   rank 1  .   F0  F0' .   .   B0' B0  F1  F1' .   .   B1' B1  F2  F2'     before compaction
//
// v_half  at most 2 floor((P + 2)/2) chunks in flight: half of 1F1B's memory. Bubble about half of
//         1F1B's; with equal costs and M >= 2 P exactly 3 P - 7 (P even; 1 for P = 2) or 3 P - 4
//         times of a chunk.
// v_min   at most 2 floor((P + 4)/3) chunks in flight: a third. Bubble about two thirds; exactly
//         4 P - 7 (3 divides P) or 4 P - 5.
//
// The order does not depend on costs. With unequal costs the bubble grows with M; that of v_half
// does not as long as w + 2 b >= 2 f and w + 2 f >= 2 b. Any M >= 1 is allowed. Construction: lay
// out the repeated pattern; move the first and the last micro-batches to earlier free slots, within
// the memory that the pattern needs anyway; put weight gradients into free slots; close the gaps
// that remain.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES (here and below): stages >= 1, microbatches >= 1.
PipelineSchedule v_half(std::int32_t stages, std::int32_t microbatches);
PipelineSchedule v_min(std::int32_t stages, std::int32_t microbatches);

// Return the published bubbles (bubble.h).
BubbleFormula v_half_bubble(const BubbleNumbers& n);
BubbleFormula v_min_bubble(const BubbleNumbers& n);

}  // namespace stepsim
