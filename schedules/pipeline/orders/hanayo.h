// Hanayo (Liu et al., arXiv 2308.15762), waves through one copy of the parameters. From the
// paper's words: no order of the authors' own code was there to compare with.
//
//   stage 0  1  2  3 | 7  6  5  4 | 8  9 ...      a wave goes down the ranks and up again: chunk c
//   rank  0  1  2  3   0  1  2  3   0  1 ...      of rank r is stage c P + r for even c,
//                                                 c P + P - 1 - r for odd c
//
// With 2 W chunks a rank there are W waves; turns need no send. Which ready op a rank runs next is
// decided here, as if a backward took two forwards (the paper's figures): the older unit of P
// micro-batches first; in it backwards before forwards or forwards before backwards, whichever ends
// sooner; then the older micro-batch. A new micro-batch enters while fewer than 2 P are under way.
// M = P is the paper's case: the bubble is then about 4 (P - 1) times of a chunk's forward, where
// 1F1B has 6 W (P - 1). No formula of the paper is claimed to hold. At most min(M, 2 P)
// micro-batches x 2 W chunks in flight, each 1/(2 W) of a stage. The order does not depend on
// costs. Even number of chunks, any M >= 1.

#pragma once

#include <cstdint>

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// REQUIRES: stages >= 1, microbatches >= 1, chunks even and at least 2.
PipelineSchedule hanayo(std::int32_t stages, std::int32_t microbatches, std::int32_t chunks);

}  // namespace stepsim
