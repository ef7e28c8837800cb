#include "schedules/pipeline/orders/zero_bubble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <deque>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

// Rank r runs ahead (P - 1 - r) forwards first, and its weight gradients ahead r backwards late.
PipelineSchedule handmade(std::int32_t stages, std::int32_t microbatches, std::int32_t ahead) {
  assert(stages >= 1 && microbatches >= 1);
  return schedule_by_rank({stages, microbatches}, [&](std::int32_t rank) {
    const std::int32_t warm_up = std::min(ahead * (stages - 1 - rank), microbatches);
    const std::int32_t late = ahead * rank;
    RankOrder order;
    for (std::int32_t i = 0; i < warm_up; ++i) order.push_back(forward_op(i));
    for (std::int32_t i = 0; i < microbatches; ++i) {
      if (warm_up + i < microbatches) order.push_back(forward_op(warm_up + i));
      order.push_back(input_op(i));
      if (i >= late) order.push_back(weight_op(i - late));
    }
    for (std::int32_t i = std::max(0, microbatches - late); i < microbatches; ++i) {
      order.push_back(weight_op(i));
    }
    return order;
  });
}

}  // namespace

PipelineSchedule zb_h1(std::int32_t stages, std::int32_t microbatches) {
  return handmade(stages, microbatches, 1);
}

PipelineSchedule zb_h2(std::int32_t stages, std::int32_t microbatches) {
  return handmade(stages, microbatches, 2);
}

PipelineSchedule zb_h1_quickstart(std::int32_t stages, std::int32_t microbatches) {
  return schedule_by_rank({stages, microbatches}, [&](std::int32_t rank) {
    const std::int32_t warm_up = std::min(stages - 1 - rank, microbatches);
    const std::int32_t last_steady = microbatches - warm_up - 1;
    RankOrder order;
    std::deque<std::int32_t> unfinished;  // micro-batches whose weight gradient is due
    for (std::int32_t i = 0; i < warm_up; ++i) order.push_back(forward_op(i));
    for (std::int32_t i = 0; i < microbatches; ++i) {
      if (i <= last_steady) order.push_back(forward_op(warm_up + i));
      if (rank > 0 && (i < rank || i >= last_steady)) {
        order.push_back(input_op(i));
        unfinished.push_back(i);
      } else {
        order.push_back(backward_op(i));
      }
      if (i >= last_steady && i >= rank && !unfinished.empty()) {
        order.push_back(weight_op(unfinished.front()));
        unfinished.pop_front();
      }
    }
    for (const std::int32_t i : unfinished) order.push_back(weight_op(i));
    return order;
  });
}

BubbleFormula zb_h1_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "(P - 1)(f + b - w)", "Qi et al., arXiv 2401.10241")
      .value((n.p - 1) * (n.f + n.b - n.w))
      .needs_short_weight()
      .needs_free_sends()
      .needs_microbatches(n.p, "P")
      .take();
}

BubbleFormula zb_h2_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "(P - 1)(f + b + 2 L - 2 w)", "Qi et al., arXiv 2401.10241")
      .value((n.p - 1) * (n.f + n.b + 2 * n.l - 2 * n.w))
      .of_span()
      .needs_short_weight()
      .needs(n.p == 1 || 2 * n.l <= n.f + n.b,
             fmt::format("2 L must be at most f + b, is {} to {}", 2 * n.l, n.f + n.b))
      .take();
}

}  // namespace stepsim
