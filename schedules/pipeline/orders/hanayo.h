// Hanayo (Liu et al., arXiv 2308.15762): waves through one copy of the parameters. The order
// follows the paper's text; it was not compared with an order of the authors' code.
//
//   stage 0  1  2  3 | 7  6  5  4 | 8  9 ...      a wave goes down the ranks and up again: chunk c
//   rank  0  1  2  3   0  1  2  3   0  1 ...      of rank r is stage c P + r for even c,
//                                                 c P + P - 1 - r for odd c
//
// With 2 W chunks per rank there are W waves. Turns need no send. If several ops are ready, this
// code chooses as if a backward took two forwards (as in the paper's figures). The older unit of P
// micro-batches goes first. Within it backwards go before forwards or the other way round,
// whichever ends sooner. Then the older micro-batch goes first. A new micro-batch enters while
// fewer than 2 P are under way.
//
// M = P is the paper's case: the bubble is then about 4 (P - 1) times of a chunk's forward, where
// 1F1B has 6 W (P - 1). The paper's formulas are not claimed to hold. At most min(M, 2 P)
// micro-batches x 2 W chunks are in flight, each 1/(2 W) of a stage. The order does not depend on
// costs. The number of chunks must be even. Any M >= 1 is allowed.

#pragma once

#include <cstdint>

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES: stages >= 1, microbatches >= 1, chunks even and at least 2.
PipelineSchedule hanayo(std::int32_t stages, std::int32_t microbatches, std::int32_t chunks);

}  // namespace stepsim
