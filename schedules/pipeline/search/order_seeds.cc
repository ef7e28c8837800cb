#include "schedules/pipeline/search/order_seeds.h"

#include "schedules/pipeline/orders/split_backwards.h"
#include "schedules/pipeline/published/make_schedule.h"

namespace stepsim {

PipelineSchedule one_at_a_time(const ScheduleShape& shape) {
  return schedule_by_rank(shape, [&](std::int32_t) {
    RankOrder order;
    for (std::int32_t i = 0; i < shape.microbatches; ++i) {
      for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
        order.push_back(forward_op(i, chunk));
      }
      for (std::int32_t chunk = shape.chunks; chunk-- > 0;) {
        order.push_back(input_op(i, chunk));
        order.push_back(weight_op(i, chunk));
      }
    }
    return order;
  });
}

std::vector<PublishedOrder> published_orders(const OptimalRequest& request, const StageCosts& costs,
                                             std::int64_t memory_limit) {
  std::vector<PublishedOrder> orders;
  const auto add = [&](const ScheduleRequest& order) {
    if (!check(order).empty()) return;
    orders.push_back({split_backwards(make_schedule(order)), std::string(name_of(order.name))});
  };
  for (const ScheduleName name : all_schedules()) {
    ScheduleRequest order{.name = name,
                          .stages = request.stages,
                          .microbatches = request.microbatches,
                          .chunks = request.chunks,
                          .costs = longest_stage(costs)};
    if (!costs.are_even()) order.stage_costs = costs.listed();
    add(order);
    if (!published(name).planning) continue;
    order.memory_limit = memory_limit;
    add(order);
  }
  return orders;
}

}  // namespace stepsim
