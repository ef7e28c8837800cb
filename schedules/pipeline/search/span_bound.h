// span_bound() is the least that the longest span of a rank (from its first start to its last end)
// can be, in any order of F, B and W within a memory limit: what optimal_schedule() proves with.
//
// Each op gets the earliest time at which it can run:
//
//   way      it comes behind the op of its micro-batch before it on the way through the pipeline
//   rank     what must have run on its rank before takes its time, and none of that starts before
//            it can: the most over all sets of what is last to be ready (Jackson's schedule)
//   memory   before the n-th forward of a rank all but K of the micro-batches before it are done
//            with W; which ones is open where there are several chunks: the earliest
//
// That is where ZB-H1's bubble comes from: with K = P the last forward of rank 0 can only run when
// M - K micro-batches are done, and has all of its way still to go. A rank's first start is known:
// nothing but the first micro-batch's forwards comes before.
//
// Time: micro-batches x chunks of a rank, squared, while that is small; then only the last ones
// before an op count.

#pragma once

#include <cstdint>

#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

// REQUIRES: placement kLoop or kV; costs positive, the send time not negative and the same
// everywhere; memory_limit >= chunks.
std::int64_t span_bound(const ScheduleShape& shape, const StageCosts& costs,
                        std::int64_t memory_limit);

}  // namespace stepsim
