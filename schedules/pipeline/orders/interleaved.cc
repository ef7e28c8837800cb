#include "schedules/pipeline/orders/interleaved.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

struct Entry {
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
};

// Returns the order of forwards, which is the same on every rank. Backwards use it with the chunks
// counted from the last.
std::vector<Entry> forward_table(const InterleavedShape& shape) {
  std::vector<Entry> table;
  for (std::int32_t first = 0; first < shape.microbatches; first += shape.microbatch_group) {
    const std::int32_t end = std::min(first + shape.microbatch_group, shape.microbatches);
    for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      for (std::int32_t i = first; i < end; ++i) table.push_back({i, chunk});
    }
  }
  return table;
}

ScheduleShape whole(const InterleavedShape& shape) {
  assert(shape.stages >= 1 && shape.microbatches >= 1 && shape.chunks >= 1);
  return {shape.stages, shape.microbatches, shape.chunks, Placement::kLoop};
}

}  // namespace

std::optional<std::int64_t> default_microbatch_group(std::int64_t stages,
                                                     std::int64_t microbatches) {
  const std::int64_t rounds = std::max<std::int64_t>(1, microbatches / stages);
  if (microbatches % rounds != 0) return std::nullopt;
  return microbatches / rounds;
}

bool is_legal_group(std::int64_t group, std::int64_t stages, std::int64_t microbatches) {
  if (group < stages || group > microbatches) return false;
  return microbatches % group == 0 || microbatches % group >= stages;
}

PipelineSchedule interleaved_1f1b(const InterleavedShape& shape) {
  const std::vector<Entry> table = forward_table(shape);
  return schedule_by_rank(whole(shape), [&](std::int32_t rank) {
    const std::size_t warm_up =
        std::min(static_cast<std::size_t>(2 * (shape.stages - 1 - rank) +
                                          (shape.chunks - 1) * shape.microbatch_group),
                 table.size());
    RankOrder order;
    for (std::size_t k = 0; k < warm_up; ++k) {
      order.push_back(forward_op(table[k].microbatch, table[k].chunk));
    }
    for (std::size_t k = 0; k < table.size(); ++k) {
      if (warm_up + k < table.size()) {
        const Entry& entry = table[warm_up + k];
        order.push_back(forward_op(entry.microbatch, entry.chunk));
      }
      order.push_back(backward_op(table[k].microbatch, shape.chunks - 1 - table[k].chunk));
    }
    return order;
  });
}

PipelineSchedule interleaved_zb1p(const InterleavedShape& shape) {
  const std::vector<Entry> table = forward_table(shape);
  return schedule_by_rank(whole(shape), [&](std::int32_t rank) {
    const std::size_t warm_up =
        std::min(static_cast<std::size_t>((shape.chunks - 1) * shape.microbatch_group +
                                          shape.stages - 1 - rank),
                 table.size());
    const auto weight = [&](std::size_t k) {
      return weight_op(table[k].microbatch, shape.chunks - 1 - table[k].chunk);
    };
    const auto late = static_cast<std::size_t>(rank);
    RankOrder order;
    for (std::size_t k = 0; k < warm_up; ++k) {
      order.push_back(forward_op(table[k].microbatch, table[k].chunk));
    }
    for (std::size_t k = 0; k < table.size(); ++k) {
      if (warm_up + k < table.size()) {
        const Entry& entry = table[warm_up + k];
        order.push_back(forward_op(entry.microbatch, entry.chunk));
      }
      order.push_back(input_op(table[k].microbatch, shape.chunks - 1 - table[k].chunk));
      if (k >= late) order.push_back(weight(k - late));
    }
    for (std::size_t k = table.size() - std::min(late, table.size()); k < table.size(); ++k) {
      order.push_back(weight(k));
    }
    return order;
  });
}

BubbleFormula interleaved_1f1b_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "(P - 1)(f + b + w)", "Narayanan et al., arXiv 2104.04473")
      .value((n.p - 1) * n.all())
      .needs_free_sends()
      .take();
}

BubbleFormula interleaved_zb1p_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "(P - 1)(f + b - w)",
                     "PyTorch, ScheduleInterleavedZeroBubble; arXiv 2401.10241")
      .value((n.p - 1) * (n.f + n.b - n.w))
      .needs_short_weight()
      .needs_free_sends()
      .needs_microbatches(n.p, "P")
      .take();
}

}  // namespace stepsim
