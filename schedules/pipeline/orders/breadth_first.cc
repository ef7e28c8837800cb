#include "schedules/pipeline/orders/breadth_first.h"

#include <fmt/format.h>

#include <cassert>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

PipelineSchedule looped(const ScheduleShape& shape, bool last_first) {
  assert(shape.stages >= 1 && shape.microbatches >= 1 && shape.chunks >= 1);
  return schedule_by_rank(shape, [&](std::int32_t) {
    RankOrder order;
    for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      for (std::int32_t i = 0; i < shape.microbatches; ++i) order.push_back(forward_op(i, chunk));
    }
    for (std::int32_t chunk = shape.chunks - 1; chunk >= 0; --chunk) {
      for (std::int32_t i = 0; i < shape.microbatches; ++i) {
        order.push_back(backward_op(last_first ? shape.microbatches - 1 - i : i, chunk));
      }
    }
    return order;
  });
}

}  // namespace

PipelineSchedule breadth_first(std::int32_t stages, std::int32_t microbatches,
                               std::int32_t chunks) {
  return looped({stages, microbatches, chunks}, false);
}

PipelineSchedule breadth_first_lifo(std::int32_t stages, std::int32_t microbatches,
                                    std::int32_t chunks) {
  return looped({stages, microbatches, chunks}, true);
}

BubbleFormula breadth_first_bubble(const BubbleNumbers& n) {
  // The first micro-batch must pass its P ranks before rank 0 needs it for the next chunk.
  const auto is_there = [&](std::int64_t time) {
    return n.m * time >= n.p * (time + (n.p == 1 ? 0 : n.l));
  };
  const bool is_looped = n.v > 1;
  return BubbleEntry(n, "(P - 1)(f + b + w + 2 L)", "Lamy-Poirier, arXiv 2211.05953")
      .value((n.p - 1) * (n.all() + 2 * n.l))
      .needs(!is_looped || (is_there(n.f) && is_there(n.backward())),
             fmt::format("M must be at least P (1 + L/f) and P (1 + L/B), so that a chunk's first "
                         "micro-batch is back in time for the next chunk, is {}",
                         n.m))
      .take();
}

}  // namespace stepsim
