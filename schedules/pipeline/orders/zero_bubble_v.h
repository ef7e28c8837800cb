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
// 2 P chunks are in flight on every rank, each half a stage, as many as 1F1B has on its first rank.
// From the earliest start to the latest end of all ranks the pipeline takes (P - 1) f longer than
// the busiest rank's work.
//
// zbv_auto proceeds over all ranks in turns. The warm-up lays rows of forwards within the memory
// limit. Then, 2 M times, each rank picks a forward and the backward whose gradient is (or will be)
// there, the deeper chunk first. Weight gradients fill waiting time. They do not where the rank has
// idled less than the rank that idled most, because then it may wait. Four variants of the filling
// are tried. Each is planned again with the idle times of its last attempt as long as that helps.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES: stages >= 1, microbatches >= 1.
PipelineSchedule zbv_hand(std::int32_t stages, std::int32_t microbatches);

// `memory_limit` counts chunks: 2 P in the authors' code. REQUIRES: stages >= 1; microbatches >= 1;
// memory_limit >= 2 x stages; costs are positive, the send time is not negative.
PipelineSchedule zbv_auto(std::int32_t stages, std::int32_t microbatches,
                          const PipelineCosts& costs, std::int64_t memory_limit);

// Returns the published bubble (bubble.h).
BubbleFormula zbv_bubble(const BubbleNumbers& n);

}  // namespace stepsim
