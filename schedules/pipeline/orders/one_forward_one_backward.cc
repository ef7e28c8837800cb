#include "schedules/pipeline/orders/one_forward_one_backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

// Each rank runs `ahead` more forwards before its first backward than the rank below it.
PipelineSchedule alternating(std::int32_t stages, std::int32_t microbatches, std::int32_t ahead) {
  assert(stages >= 1 && microbatches >= 1);
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

BubbleFormula one_forward_one_backward_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "(P - 1)(F + B + 2 L)", "Narayanan et al., arXiv 2104.04473")
      .value((n.p - 1) * (n.all() + 2 * n.l))
      .needs(n.l == 0 || n.p == 1 || n.m == 1,
             fmt::format("sends must be free, take {}: only P - r micro-batches are in flight, "
                         "so that each round trip of 2 (P - 1) sends holds up P of them",
                         n.l))
      .take();
}

BubbleFormula eager_one_forward_one_backward_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "(P - 1)(F + B + 2 L)", "Zhuang et al., arXiv 2211.05322")
      .value((n.p - 1) * (n.all() + 2 * n.l))
      .needs(n.p == 1 || 2 * n.l <= n.all(),
             fmt::format("2 L must be at most F + B, is {} to {}", 2 * n.l, n.all()))
      .take();
}

}  // namespace stepsim
