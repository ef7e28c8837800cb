// Chimera (Li and Hoefler, arXiv 2107.06925): two pipelines in opposite directions. Units of P
// micro-batches follow one another ("direct concatenation").
//
//   slot    0   1   2   3   4   5   6   7   8   9           P = M = 4; a BW drawn as short as an F;
//   rank 0  F0  .   F1  F2' BW2'F3' BW3'BW0 .   BW1         ' comes from rank P - 1
//   rank 1  .   F0  F2' F1  F3' BW2'BW0 BW3'BW1 .
//   rank 2  .   F2' F0  F3' F1  BW0 BW2'BW1 BW3'.
//   rank 3  F2' .   F3' F0  BW0 F1  BW1 BW2'.   BW3'
//
// Every rank holds stage r and stage P - 1 - r. So there are two copies of the parameters, whose
// gradients ranks r and P - 1 - r reduce. Unit k has P/2 micro-batches of each direction.
// Micro-batch j of a direction runs at position q (r or P - 1 - r) in slot 2 P k + 2 j + q and its
// backward in slot 2 P k + 2 j + 2 P - 1 - q. Ranks run their ops by slot.
//
// The published bubble ratio is (P - 2)/(2 M + P - 2) if the backward takes as long as the forward
// and (P - 2)/(3 M/2 + P - 2) if it takes twice as long. A replay gives (P - 2)(B + (k - 1)(B - F))
// for M = k P and F <= B. The paper fills the gaps between units by doubling forwards; that is not
// done here. From P/2 + 1 (at the ends) to P (in the middle) chunks are in flight. P and M must be
// even.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES: stages and microbatches even, at least 2.
PipelineSchedule chimera(std::int32_t stages, std::int32_t microbatches);

// Returns the published bubble (bubble.h).
BubbleFormula chimera_bubble(const BubbleNumbers& n);

}  // namespace stepsim
