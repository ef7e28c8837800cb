#include "schedules/pipeline/orders/naive.h"

#include <cassert>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {

PipelineSchedule naive_sequential(std::int32_t stages, std::int32_t microbatches) {
  assert(stages >= 1 && microbatches >= 1);
  return schedule_by_rank({stages, microbatches}, [&](std::int32_t) {
    RankOrder order;
    for (std::int32_t i = 0; i < microbatches; ++i) {
      order.push_back(forward_op(i));
      order.push_back(backward_op(i));
    }
    return order;
  });
}

PipelineSchedule naive(std::int32_t stages) {
  return naive_sequential(stages, 1);
}

BubbleFormula naive_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "M (P - 1)(F + B + 2 L)", "definition")
      .value(n.m * (n.p - 1) * (n.all() + 2 * n.l))
      .take();
}

}  // namespace stepsim
