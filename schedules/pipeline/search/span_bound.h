// span_bound() returns a lower bound on the longest span of a rank (from its first start to its
// last end) over all orders of F, B and W within a memory limit. optimal_schedule() proves its
// results with it.
//
// Each op gets the earliest time at which it can run:
//
//   way      it comes behind the op of its micro-batch before it on the way through the pipeline
//   rank     what must have run on its rank before takes its time, and none of that starts before
//            it can: the most over all sets of what is last to be ready (Jackson's schedule)
//   memory   before the n-th forward of a rank all but K of the micro-batches before it are done
//            with W; which ones is open where there are several chunks: the earliest
//
// This explains ZB-H1's bubble: with K = P the last forward of rank 0 can only run when M - K
// micro-batches are done, and then all of its way is still to go. A rank's first start is known:
// only the first micro-batch's forwards come before it.
//
// Time: the square of micro-batches x chunks of a rank while that is small. Beyond that, only the
// last ones before an op are counted.

#pragma once

#include <cstdint>

#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

// REQUIRES: placement is kLoop or kV; costs are positive, the send time is not negative and the
// same everywhere; memory_limit >= chunks.
std::int64_t span_bound(const ScheduleShape& shape, const StageCosts& costs,
                        std::int64_t memory_limit);

}  // namespace stepsim
