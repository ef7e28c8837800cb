#include "schedules/pipeline/search/order_seeds.h"

#include "schedules/pipeline/make_schedule.h"
#include "schedules/pipeline/orders/split_backwards.h"

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
  const auto add = [&](const ScheduleRequest& published) {
    if (!check(published).empty()) return;
    orders.push_back(
        {split_backwards(make_schedule(published)), std::string(name_of(published.name))});
  };
  for (const ScheduleName name : kScheduleNames) {
    ScheduleRequest published{.name = name,
                              .stages = request.stages,
                              .microbatches = request.microbatches,
                              .chunks = request.chunks,
                              .costs = longest_stage(costs)};
    if (!costs.are_even()) published.stage_costs = costs.listed();
    add(published);
    if (!plans_by_cost(name)) continue;
    published.memory_limit = memory_limit;
    add(published);
  }
  return orders;
}

}  // namespace stepsim
