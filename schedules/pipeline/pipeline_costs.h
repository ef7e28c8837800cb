// PipelineCosts: how long the ops of a pipeline take, for schedules that are planned by time and
// for replay(). Whole numbers of any unit (picoseconds, say): sums are exact.

#pragma once

#include <cstdint>

namespace stepsim {

// Of one micro-batch on one chunk.
struct PipelineCosts {
  std::int64_t forward = 1;
  std::int64_t backward_input = 1;
  std::int64_t backward_weight = 1;
  std::int64_t send = 0;  // from one rank to another; between chunks of one rank it is free

  std::int64_t backward() const { return backward_input + backward_weight; }
  std::int64_t all() const { return forward + backward(); }
};

}  // namespace stepsim
