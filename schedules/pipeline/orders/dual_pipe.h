// DualPipe and DualPipeV (DeepSeek-V3 technical report, arXiv 2412.19437; their code): forward and
// full backward of two micro-batches run as one fused op, in which the all-to-all of each hides
// behind the compute of the other.
//
//   rank 0  F0 F4' F1 BW4'      FB5'/0 FB2/5'  ..  BW7' B3 W3      dualpipe, 2 ranks, M = 8:
//   rank 1  F4' F0 F5' BW0      FB1/4' FB6'/1  ..  BW3 B7' W7'     ' comes from the other end
//
// dualpipe   micro-batches 0..M/2-1 enter at rank 0, the others at rank P - 1: every rank holds
//            stage r and stage P - 1 - r, two copies of the parameters, whose gradients ranks r and
//            P - 1 - r reduce. Even P, even M (both directions together), M >= 2 P. Bubble
//            (P/2 - 1)(F&B + B - 3 W), B the full backward and F&B the fused op: with
//            F&B = f + b + w it is (P/2 - 1)(f + 2 b - w). Replayed it is exactly that where
//            f = b and w <= b. P + 1 chunks in flight.
// dualpipev  "cut in half": one direction, two chunks a rank laid out as a V, one copy. P >= 2,
//            M >= 2 P. The same bubble with 2 P stages: (P - 1)(f + 2 b - w) in times of a chunk;
//            2 P + 1 chunks in flight.
//
// With h the distance of a rank from the nearer end (dualpipev: from rank 0), H ranks to the turn
// and m micro-batches from an end, a rank runs, with near and far as seen from that end:
//   1. 2(H-1-h) F near   2. (h+1) F near, F far   3. (H-1-h) B far, W, F far
//   4. (m-2H+h+1) F near & BW far, F far & BW near   (at the turn the first pair is not fused)
//   5. (H-1-h) BW far, F far & BW near   6. (h+1) backward far, backward near: first half BW,
//   the other half B   7. (H-1-h) W, B near   8. (h+1) W.   W is always the oldest that is due.
//
// Messages: an op notes its receives before it runs and its sends after it. Everything noted goes
// as one batch before the next op. Some messages are noted earlier or later, as the code says.

#pragma once

#include <cstdint>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/posting.h"

namespace stepsim {

// REQUIRES: stages and microbatches even, microbatches >= 2 x stages.
PipelineSchedule dualpipe(std::int32_t stages, std::int32_t microbatches);

// REQUIRES: stages >= 2, microbatches >= 2 x stages.
PipelineSchedule dualpipev(std::int32_t stages, std::int32_t microbatches);

// Posts messages as the authors' code does (dualpipe.py: _commit_and_wait_comm). Sends and receives
// are noted, and all noted ones go as one batch before the next op. An op waits for all batches
// before it.
Posting post_committed(const PipelineSchedule& schedule, const StageCosts& costs);
inline constexpr PostingRule kPostCommitted{post_committed,
                                            "before each op, as DualPipe commits them"};

// Return the published bubbles (bubble.h).
BubbleFormula dualpipe_bubble(const BubbleNumbers& n);
BubbleFormula dualpipev_bubble(const BubbleNumbers& n);

}  // namespace stepsim
