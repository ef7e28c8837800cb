#include "schedules/pipeline/dual_pipe.h"

#include <algorithm>
#include <array>
#include <deque>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

struct Side {
  std::int32_t chunk = 0;
  std::int32_t first_microbatch = 0;
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
};

class DualOrder {
 public:
  DualOrder(Side near, Side far) : near_(near), far_(far) {}

  Side& near() { return near_; }
  Side& far() { return far_; }

  void forward(Side& side) { order_.push_back(next_forward(side)); }
  void backward(Side& side) { order_.push_back(next_backward(side)); }
  void input(Side& side) {
    const PipelineOp whole = next_backward(side);
    order_.push_back(input_op(whole.microbatch, whole.chunk));
    unfinished_.push_back(weight_of(whole));
  }
  void weight() {
    order_.push_back(unfinished_.front());
    unfinished_.pop_front();
  }
  void fused(Side& forward, Side& backward) {
    const PipelineOp first = next_forward(forward);
    order_.push_back(fused_op(first, next_backward(backward)));
  }
  const RankOrder& order() const { return order_; }

 private:
  static PipelineOp next_forward(Side& side) {
    return forward_op(side.first_microbatch + side.forwards++, side.chunk);
  }
  static PipelineOp next_backward(Side& side) {
    return backward_op(side.first_microbatch + side.backwards++, side.chunk);
  }

  Side near_;
  Side far_;
  std::deque<PipelineOp> unfinished_;
  RankOrder order_;
};

struct Position {
  std::int32_t from_end = 0;          // h
  std::int32_t to_turn = 0;           // H
  std::int32_t from_end_batches = 0;  // m
};

RankOrder eight_steps(const Position& position, const Side& near_side, const Side& far_side) {
  DualOrder list(near_side, far_side);
  Side& near = list.near();
  Side& far = list.far();
  const std::int32_t inner = position.from_end + 1;
  const std::int32_t outer = position.to_turn - inner;
  const auto repeat = [](std::int32_t times, const auto& body) {
    for (std::int32_t i = 0; i < times; ++i) body(i);
  };
  repeat(2 * outer, [&](std::int32_t) { list.forward(near); });
  repeat(inner, [&](std::int32_t) {
    list.forward(near);
    list.forward(far);
  });
  repeat(outer, [&](std::int32_t) {
    list.input(far);
    list.weight();
    list.forward(far);
  });
  repeat(position.from_end_batches - 2 * position.to_turn + inner, [&](std::int32_t i) {
    if (i == 0 && outer == 0) {
      list.forward(near);
      list.backward(far);
    } else {
      list.fused(near, far);
    }
    list.fused(far, near);
  });
  repeat(outer, [&](std::int32_t) {
    list.backward(far);
    list.fused(far, near);
  });
  repeat(2 * inner, [&](std::int32_t i) {
    Side& side = i % 2 == 0 ? far : near;
    if (i < inner) {
      list.backward(side);
    } else {
      list.input(side);
    }
  });
  repeat(outer, [&](std::int32_t) {
    list.weight();
    list.input(near);
  });
  repeat(inner, [&](std::int32_t) { list.weight(); });
  return list.order();
}

}  // namespace

PipelineSchedule dualpipe(std::int32_t stages, std::int32_t microbatches) {
  const ScheduleShape shape{stages, microbatches, 2, Placement::kBidirectional};
  return schedule_by_rank(shape, [&](std::int32_t rank) {
    const Side down{.chunk = 0, .first_microbatch = 0};
    const Side up{.chunk = 1, .first_microbatch = microbatches / 2};
    const bool is_upper = rank < stages / 2;
    return eight_steps({std::min(rank, stages - 1 - rank), stages / 2, microbatches / 2},
                       is_upper ? down : up, is_upper ? up : down);
  });
}

PipelineSchedule dualpipev(std::int32_t stages, std::int32_t microbatches) {
  const ScheduleShape shape{stages, microbatches, 2, Placement::kV};
  return schedule_by_rank(shape, [&](std::int32_t rank) {
    return eight_steps({rank, stages, microbatches}, {.chunk = 0}, {.chunk = 1});
  });
}

}  // namespace stepsim
