#include "schedules/pipeline/orders/dual_pipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <utility>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

constexpr const char* kDualPipeReadme = "DeepSeek, DualPipe's README; arXiv 2412.19437";

// Side is one end of the pipeline as a rank sees it: the chunk that its micro-batches run through,
// and how many of them have done so.
struct Side {
  std::int32_t chunk = 0;
  std::int32_t first_microbatch = 0;
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  std::int32_t received_activations = 0;
  std::int32_t received_gradients = 0;
};

// DualList is the list of a rank and the batches of messages between its ops. Some messages may
// have no receiver.
struct DualList {
  RankOrder order{};
  std::vector<PostedBatch> batches{};
};

class DualRank {
 public:
  DualRank(Side near, Side far) : near_(near), far_(far) {}

  Side& near() { return near_; }
  Side& far() { return far_; }

  // Ops. Everything noted so far goes as one batch before the op. Messages that are not the op's
  // own are noted separately.
  struct With {
    bool receive = true;
    bool send = true;
  };
  void forward(Side& side, With with = {.receive = true, .send = true}) {
    if (with.receive) receive_activation(side);
    commit(next_forward(side));
    if (with.send) send_activation(side);
  }
  void backward(Side& side, With with = {.receive = true, .send = true}) {
    receive_gradient(side);
    commit(next_backward(side));
    if (with.send) send_gradient(side);
  }
  void input(Side& side) {
    receive_gradient(side);
    const PipelineOp whole = next_backward(side);
    commit(input_op(whole.microbatch, whole.chunk));
    unfinished_.push_back(weight_of(whole));
    send_gradient(side);
  }
  void weight() {
    commit(unfinished_.front());
    unfinished_.pop_front();
  }
  void fused(Side& forward, Side& backward, With with = {.receive = true, .send = true}) {
    if (with.receive) receive_activation(forward);
    receive_gradient(backward);
    const PipelineOp first = next_forward(forward);
    commit(fused_op(first, next_backward(backward)));
    send_activation(forward);
    send_gradient(backward);
  }

  // Messages: a side's next message to receive, and the result of its latest op.
  void receive_activation(Side& side) { note(false, true, side, side.received_activations++); }
  void receive_gradient(Side& side) { note(false, false, side, side.received_gradients++); }
  void send_activation(Side& side) { note(true, true, side, side.forwards - 1); }
  void send_gradient(Side& side) { note(true, false, side, side.backwards - 1); }

  DualList take() {
    commit();
    return std::move(list_);
  }

 private:
  static PipelineOp next_forward(Side& side) {
    return forward_op(side.first_microbatch + side.forwards++, side.chunk);
  }
  static PipelineOp next_backward(Side& side) {
    return backward_op(side.first_microbatch + side.backwards++, side.chunk);
  }

  void note(bool is_send, bool is_activation, const Side& side, std::int32_t number) {
    noted_.push_back({is_send, is_activation, side.first_microbatch + number, side.chunk});
  }
  void commit() {
    if (noted_.empty()) return;
    list_.batches.push_back({list_.order.size(), std::exchange(noted_, {})});
  }
  void commit(const PipelineOp& op) {
    commit();
    list_.order.push_back(op);
  }

  Side near_;
  Side far_;
  std::deque<PipelineOp> unfinished_{};
  std::vector<PostedMessage> noted_{};
  DualList list_{};
};

struct Position {
  std::int32_t from_end = 0;          // h
  std::int32_t to_turn = 0;           // H
  std::int32_t from_end_batches = 0;  // m
};

DualList eight_steps(const Position& position, const Side& near_side, const Side& far_side) {
  DualRank rank(near_side, far_side);
  Side& near = rank.near();
  Side& far = rank.far();
  const std::int32_t inner = position.from_end + 1;
  const std::int32_t outer = position.to_turn - inner;
  const bool is_turn = outer == 0;
  const auto repeat = [](std::int32_t times, const auto& body) {
    for (std::int32_t i = 0; i < times; ++i) body(i);
  };
  repeat(2 * outer, [&](std::int32_t) { rank.forward(near); });
  rank.receive_activation(near);
  repeat(inner, [&](std::int32_t i) {
    rank.forward(near, {.receive = false, .send = is_turn});
    rank.receive_activation(near);
    rank.forward(far, {.receive = true, .send = !is_turn || i < inner - 1});
    if (!is_turn) rank.send_activation(near);
  });
  repeat(outer, [&](std::int32_t) {
    rank.input(far);
    rank.receive_activation(far);
    rank.weight();
    rank.forward(far, {.receive = false, .send = true});
  });
  repeat(position.from_end_batches - 2 * position.to_turn + inner, [&](std::int32_t i) {
    if (i == 0 && is_turn) {
      rank.forward(near, {.receive = false, .send = false});
      rank.send_activation(far);
      rank.backward(far, {.receive = true, .send = false});
      rank.send_activation(near);
      rank.send_gradient(far);
    } else {
      rank.fused(near, far, {.receive = i > 0, .send = true});
    }
    rank.fused(far, near);
  });
  repeat(outer, [&](std::int32_t) {
    rank.backward(far);
    rank.fused(far, near);
  });
  repeat(2 * inner, [&](std::int32_t i) {
    Side& side = i % 2 == 0 ? far : near;
    if (i < inner) {
      rank.backward(side);
    } else {
      rank.input(side);
    }
  });
  repeat(outer, [&](std::int32_t) {
    rank.weight();
    rank.input(near);
  });
  repeat(inner, [&](std::int32_t) { rank.weight(); });
  return rank.take();
}

// Returns the list of a rank in dualpipe or, if the placement is a V, in dualpipev.
DualList list_of(const ScheduleShape& shape, std::int32_t rank) {
  if (shape.placement == Placement::kV) {
    return eight_steps({rank, shape.stages, shape.microbatches}, {.chunk = 0}, {.chunk = 1});
  }
  const Side down{.chunk = 0, .first_microbatch = 0};
  const Side up{.chunk = 1, .first_microbatch = shape.microbatches / 2};
  const bool is_upper = rank < shape.stages / 2;
  return eight_steps(
      {std::min(rank, shape.stages - 1 - rank), shape.stages / 2, shape.microbatches / 2},
      is_upper ? down : up, is_upper ? up : down);
}

PipelineSchedule schedule_of(const ScheduleShape& shape) {
  return schedule_by_rank(shape, [&](std::int32_t rank) { return list_of(shape, rank).order; });
}

// `outer` is the number of waiting ranks of a direction; `ranks` is its text.
BubbleFormula bubble_of(const BubbleNumbers& n, std::int64_t outer, const std::string& ranks) {
  const std::string in_parts = n.fused ? "" : " = " + ranks + "(f + 2 b - w)";
  const std::int64_t fused = n.fused.value_or(n.all());
  return BubbleEntry(n, ranks + "(F&B + B - 3 W)" + in_parts, kDualPipeReadme)
      .value(outer * (fused + n.b - 2 * n.w))
      .needs(fused == n.all(),
             fmt::format("F&B must be f + b + w = {}, is {}: a shorter one also saves time in the "
                         "middle, more on ranks with more fused ops",
                         n.all(), fused))
      .needs(outer == 0 || n.f == n.b, fmt::format("f must equal b, is {} to {}", n.f, n.b))
      .needs(outer == 0 || n.w <= n.b, fmt::format("w must be at most b, is {} to {}", n.w, n.b))
      .needs_free_sends()
      .take();
}

}  // namespace

PipelineSchedule dualpipe(std::int32_t stages, std::int32_t microbatches) {
  assert(stages % 2 == 0 && microbatches % 2 == 0 && microbatches >= 2 * stages);
  return schedule_of({stages, microbatches, 2, Placement::kBidirectional});
}

PipelineSchedule dualpipev(std::int32_t stages, std::int32_t microbatches) {
  assert(stages >= 2 && microbatches >= 2 * stages);
  return schedule_of({stages, microbatches, 2, Placement::kV});
}

Posting post_committed(const PipelineSchedule& schedule, const StageCosts&) {
  const ScheduleShape shape{schedule.size(), schedule.microbatches, 2, schedule.placement};
  Posting posting{.ranks = {}, .waits_for_all = true};
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    DualList list = list_of(shape, rank);
    assert(list.order == schedule.ranks[static_cast<std::size_t>(rank)]);
    for (PostedBatch& batch : list.batches) {
      std::erase_if(batch.messages,
                    [&](const PostedMessage& message) { return !way_of(schedule, rank, message); });
    }
    std::erase_if(list.batches, [](const PostedBatch& batch) { return batch.messages.empty(); });
    posting.ranks.push_back(std::move(list.batches));
  }
  return posting;
}

BubbleFormula dualpipe_bubble(const BubbleNumbers& n) {
  return bubble_of(n, n.p / 2 - 1, "(P/2 - 1)");
}

BubbleFormula dualpipev_bubble(const BubbleNumbers& n) {
  return bubble_of(n, n.p - 1, "(P - 1)");
}

}  // namespace stepsim
