#include "schedules/pipeline/orders/zero_bubble_v.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

// HandOrder writes the list of one rank. Each kind of op has its own count of micro-batches. Ops of
// micro-batches beyond the last are dropped.
class HandOrder {
 public:
  explicit HandOrder(std::int32_t microbatches) : microbatches_(microbatches) {}

  void forward(int chunk) { put(forward_op(forwards_[index(chunk)]++, chunk)); }
  void input(int chunk) { put(input_op(inputs_[index(chunk)]++, chunk)); }
  void weight(int chunk) { put(weight_op(weights_[index(chunk)]++, chunk)); }
  void backward(int chunk) {
    input(chunk);
    weight(chunk);
  }
  std::int32_t forwards(int chunk) const { return forwards_[index(chunk)]; }
  bool has_weight(int chunk) const { return weights_[index(chunk)] < inputs_[index(chunk)]; }
  const RankOrder& order() const { return order_; }

 private:
  static std::size_t index(int chunk) { return static_cast<std::size_t>(chunk); }
  void put(const PipelineOp& op) {
    if (op.microbatch < microbatches_) order_.push_back(op);
  }

  std::int32_t microbatches_;
  std::array<std::int32_t, 2> forwards_{};
  std::array<std::int32_t, 2> inputs_{};
  std::array<std::int32_t, 2> weights_{};
  RankOrder order_;
};

}  // namespace

PipelineSchedule zbv_hand(std::int32_t stages, std::int32_t microbatches) {
  assert(stages >= 1 && microbatches >= 1);
  const std::int32_t planned = std::max(2 * stages - 1, microbatches);
  return schedule_by_rank({stages, microbatches, 2, Placement::kV}, [&](std::int32_t rank) {
    HandOrder list(microbatches);
    for (std::int32_t i = 0; i < 2 * (stages - rank) - 1; ++i) list.forward(0);
    for (std::int32_t i = 0; i < rank; ++i) {
      list.forward(1);
      list.forward(0);
    }
    for (std::int32_t i = 0; i < stages - rank; ++i) {
      list.forward(1);
      list.backward(1);
    }
    while (list.forwards(1) < list.forwards(0) || list.forwards(0) < planned) {
      if (list.forwards(0) < planned) list.forward(0);
      list.backward(0);
      list.forward(1);
      list.backward(1);
    }
    for (std::int32_t i = 0; i < rank; ++i) {
      list.input(0);
      list.input(1);
    }
    for (std::int32_t i = 0; i < stages - rank; ++i) list.backward(0);
    while (list.has_weight(1)) list.weight(1);
    while (list.has_weight(0)) list.weight(0);
    return list.order();
  });
}

BubbleFormula zbv_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "0", "Qi et al., arXiv 2401.10241")
      .of_span()
      .needs_equal_times()
      .needs_free_sends()
      .needs_microbatches(2 * n.p - 1, "2 P - 1")
      .needs_own_memory()
      .take();
}

}  // namespace stepsim
