#include "schedules/pipeline/orders/chimera.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {

PipelineSchedule chimera(std::int32_t stages, std::int32_t microbatches) {
  assert(stages >= 2 && stages % 2 == 0 && microbatches >= 2 && microbatches % 2 == 0);
  const ScheduleShape shape{stages, microbatches, 2, Placement::kBidirectional};
  return schedule_by_rank(shape, [&](std::int32_t rank) {
    std::vector<std::pair<std::int64_t, PipelineOp>> by_slot;
    for (std::int32_t direction = 0; direction < 2; ++direction) {
      const std::int32_t position = direction == 0 ? rank : stages - 1 - rank;
      for (std::int32_t i = 0; i < microbatches / 2; ++i) {
        const std::int64_t unit = i / (stages / 2);
        const std::int64_t in_unit = i % (stages / 2);
        const std::int64_t enters = 2 * stages * unit + 2 * in_unit;
        const std::int32_t microbatch = direction * (microbatches / 2) + i;
        by_slot.emplace_back(enters + position, forward_op(microbatch, direction));
        by_slot.emplace_back(enters + 2 * stages - 1 - position,
                             backward_op(microbatch, direction));
      }
    }
    std::ranges::sort(by_slot, {}, [](const auto& entry) { return entry.first; });
    RankOrder order;
    for (const auto& [slot, op] : by_slot) order.push_back(op);
    return order;
  });
}

BubbleFormula chimera_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n,
                     "(P - 2) B: (P - 2)/(2 M + P - 2) of the whole for F = B, "
                     "(P - 2)/(3 M/2 + P - 2) for B = 2 F",
                     "Li and Hoefler, arXiv 2107.06925")
      .value((n.p - 2) * n.backward())
      .needs(n.f <= n.backward(),
             fmt::format("F must be at most B, is {} to {}", n.f, n.backward()))
      .needs(n.m % n.p == 0, fmt::format("M must be a multiple of P, is {} to {}", n.m, n.p))
      .needs(n.m == n.p || n.f == n.backward(),
             fmt::format("with M > P, F must equal B (each further unit of P micro-batches adds "
                         "(P - 2)(B - F) where forwards are not doubled), is {} to {}",
                         n.f, n.backward()))
      .needs_free_sends()
      .take();
}

}  // namespace stepsim
