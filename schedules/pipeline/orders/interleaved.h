// Interleaved schedules: every rank holds V chunks of the model (chunk c of rank r is stage
// c P + r) and works on groups of N micro-batches, one chunk after the other.
//
//   rank 0  F0.0 F1.0 F0.1 F1.1 F2.0 BW0.1 F3.0 BW1.1 F2.1 BW0.0 ...
//   rank 1  .... F0.0 F1.0 F0.1 BW0.1 F1.1 BW1.1 F2.0 BW0.0 F3.0 BW1.0 ...
//   (2 stages, N = V = 2; a BW drawn as short as an F)
//
// interleaved_1f1b  Narayanan et al. 2021, arXiv 2104.04473 (Megatron-LM). Bubble
//                   (P - 1)(f + b + w) in times of a chunk, 1/V of that of 1F1B, for V times as
//                   many sends; min(2(P - 1 - r) + (V - 1) N + 1, M V) chunks in flight on rank r,
//                   with N = P on rank 0 1 + (P - 1)/(P V) times 1F1B's (arXiv 2205.05198).
// interleaved_zb1p  the same with split backwards, rank r's weight gradients r backwards late
//                   (PyTorch's ScheduleInterleavedZeroBubble). Bubble (P - 1)(f + b - w). With one
//                   chunk it is ZB-H1.
//
// Groups: Megatron's microbatch_group_size_per_vp_stage, P <= N <= M, and M mod N is 0 or at least
// P (then the last group is smaller). Without a given N it is PyTorch's: M / max(1, M div P), which
// must come out whole; P where P divides M.

#pragma once

#include <cstdint>
#include <optional>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

struct InterleavedShape {
  std::int32_t stages = 0;
  std::int32_t microbatches = 0;
  std::int32_t chunks = 0;
  std::int32_t microbatch_group = 0;
};

// Returns the group size to use if none is given; nullopt if it would not be whole.
std::optional<std::int64_t> default_microbatch_group(std::int64_t stages,
                                                     std::int64_t microbatches);

// Returns whether a group of this size is allowed.
bool is_legal_group(std::int64_t group, std::int64_t stages, std::int64_t microbatches);

// REQUIRES (here and below): all numbers are at least 1; microbatch_group is allowed.
PipelineSchedule interleaved_1f1b(const InterleavedShape& shape);
PipelineSchedule interleaved_zb1p(const InterleavedShape& shape);

// Return the published bubbles (bubble.h).
BubbleFormula interleaved_1f1b_bubble(const BubbleNumbers& n);
BubbleFormula interleaved_zb1p_bubble(const BubbleNumbers& n);

}  // namespace stepsim
