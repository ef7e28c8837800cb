#include "schedules/pipeline/orders/one_forward_one_backward.h"

#include <algorithm>

#include "schedules/pipeline/orders/op_makers.h"

namespace stepsim {
namespace {

// Each rank runs `ahead` more forwards before its first backward than the rank below it.
PipelineSchedule alternating(std::int32_t stages, std::int32_t microbatches, std::int32_t ahead) {
  return schedule_by_rank({stages, microbatches}, [&](std::int32_t rank) {
    const std::int32_t warm_up = std::min(ahead * (stages - 1 - rank), microbatches);
    RankOrder order;
    for (std::int32_t i = 0; i < warm_up; ++i) order.push_back(forward_op(i));
    for (std::int32_t i = 0; i < microbatches; ++i) {
      if (warm_up + i < microbatches) order.push_back(forward_op(warm_up + i));
      order.push_back(backward_op(i));
    }
    return order;
  });
}

}  // namespace

PipelineSchedule one_forward_one_backward(std::int32_t stages, std::int32_t microbatches) {
  return alternating(stages, microbatches, 1);
}

PipelineSchedule eager_one_forward_one_backward(std::int32_t stages, std::int32_t microbatches) {
  return alternating(stages, microbatches, 2);
}

}  // namespace stepsim
