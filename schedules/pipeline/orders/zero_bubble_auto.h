// ZB auto is the heuristic that the authors of zero-bubble pipelines plan with (Qi et al., arXiv
// 2401.10241, their code with the integer programme switched off). It plans by measured times:
//
//   rank 0  F0 F1 F2 F3 F4 B0 F5 W0 B1 W1 B2 W2 B3 ...   warm-up: forwards until the first gradient
//   rank 1  .. F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 W0 B4 ...   is there, as far as memory allows; then F
//   rank 2  .. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 ...   and B in turn, W where a rank would wait
//   (zb_auto_2p, 3 stages, 6 micro-batches, all times equal)
//
// A rank that would wait for a message runs weight gradients instead. It leaves them waiting if
// that delays nobody, which is so if it has idled less than the rank that idled most. Eight
// variants are tried: whether the warm-up may overrun the first gradient, whether forwards may be
// put off, and whether a gap too short for a W is filled anyway. The first one with the shortest
// time from a rank's first start to its last end is kept.
//
// Memory: at most `limit` micro-batches are in flight on a rank: P for zb_auto_1p, 2 P for
// zb_auto_2p. A micro-batch is in flight until its W, unless `memory` says that B releases a part.
// The authors' code counts 34 h + 5 a s for F and releases all but 32 h of it at B (a heads, s
// tokens, width h; without flash attention). With that, 2 P reaches no bubble with measured times
// too.
//
// For f = b = w, free sends and M >= 2 P, the bubble is that of ZB-H1 with limit P. With 2 P there
// is none from a rank's first start to its last end. With other times 2 P is not always enough for
// that. The order depends on the costs, which may differ between stages, as in the authors' code.
// Any M >= 1 is allowed. Time: 8 x 3 P M ops.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

// REQUIRES: stages, microbatches and memory_limit >= 1; costs are positive, the send time is not
// negative; 0 < memory.weight <= memory.forward.
PipelineSchedule zb_auto(std::int32_t stages, std::int32_t microbatches, const StageCosts& costs,
                         std::int64_t memory_limit, const ActivationMemory& memory = {});

// Return the published bubbles (bubble.h).
BubbleFormula zb_auto_1p_bubble(const BubbleNumbers& n);
BubbleFormula zb_auto_2p_bubble(const BubbleNumbers& n);

}  // namespace stepsim
