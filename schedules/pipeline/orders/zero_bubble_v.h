// ZB-V (Qi et al., arXiv 2401.10241, section 6): zero bubble with the memory of 1F1B. Every rank
// holds two chunks laid out as a V, so that rank 0 has the first and the last stage and the turn at
// rank P - 1 needs no send. Backwards are split; ' marks chunk 1.
//
//   rank 0  F0 F1 F2 F3 F4 F0' B0' W0' F1' B1' W1' F2' B2' W2' F5 B0 W0 ...     3 stages
//   rank 1  .. F0 F1 F2 F0' F3 F1' B0' W0' F2' B1' W1' F4 B0 W0 F3' B2' ...
//   rank 2  .. .. F0 F0' F1 F1' F2 F2' B0' W0' F3 B0 W0 F3' B1' W1' F4 ...
//
// zbv_hand  the order by hand for f = b = w: then, with M >= 2 P - 1 and free sends, no bubble
//           between a rank's first start and its last end. Any M >= 1: the ops of the
//           micro-batches beyond M are left out. The same order as PyTorch's.
// zbv_auto  the authors' planner for measured times, see below. The order depends on the costs.
//
// 2 P chunks in flight on every rank, each half a stage: what 1F1B has on its first rank. From the
// first start of all to the last end of all (P - 1) f more than the busiest rank's work.
//
// zbv_auto, in turns over all ranks: warm-up in rows of forwards within the memory limit; then
// 2 M times each rank picks the backward whose gradient is (or will be) there, deeper chunk first,
// and a forward; weight gradients fill waiting, but not where the rank has idled less than the one
// that idled most and may therefore wait. Four variants of the filling are tried, and each is
// planned anew with the idle time of its last attempt as long as that helps.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES: stages >= 1, microbatches >= 1.
PipelineSchedule zbv_hand(std::int32_t stages, std::int32_t microbatches);

// `memory_limit` in chunks: 2 P in the authors' code.
// REQUIRES: stages >= 1, microbatches >= 1, memory_limit >= 2 x stages, costs positive, the send
// time not negative.
PipelineSchedule zbv_auto(std::int32_t stages, std::int32_t microbatches,
                          const PipelineCosts& costs, std::int64_t memory_limit);

// The bubble that is published for it (bubble.h).
BubbleFormula zbv_bubble(const BubbleNumbers& n);

}  // namespace stepsim
