#include "schedules/pipeline/orders/breadth_first.h"

#include "schedules/pipeline/orders/op_makers.h"

namespace stepsim {
namespace {

PipelineSchedule looped(const ScheduleShape& shape, bool last_first) {
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

}  // namespace stepsim
