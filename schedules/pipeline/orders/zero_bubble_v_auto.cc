#include <algorithm>
#include <array>
#include <cassert>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/orders/zero_bubble_v.h"

namespace stepsim {
namespace {

// Messages of kinds 0 and 2 come from rank r - 1, of kinds 1 and 3 from rank r + 1.
enum Kind : std::size_t { kForwardDown = 0, kForwardUp = 1, kBackwardDown = 2, kBackwardUp = 3 };

struct VAutoOptions {
  bool fill_before_backward =
      true;  // also before a kBackwardDown when the W is longer than the gap
  bool fill_before_forward = true;
};

struct VAutoTask {
  std::int32_t stages = 0;
  std::int32_t microbatches = 0;
  PipelineCosts costs{};
  std::int64_t memory_limit = 0;
};

struct VAutoRank {
  std::int64_t free_at = 0;
  std::int64_t in_flight = 0;
  std::int64_t idle = 0;  // idle time since its first forward began
  std::array<std::vector<std::int64_t>, 4> ends{};
  std::deque<PipelineOp> unfinished{};  // backwards whose weight gradient is due
  RankOrder order{};

  std::int32_t count(Kind kind) const { return static_cast<std::int32_t>(ends[kind].size()); }
};

class VAutoPlanner {
 public:
  // `earlier_idle` is the idle time of each rank in the previous attempt; empty in the first.
  VAutoPlanner(const VAutoTask& task, VAutoOptions options,
               const std::vector<std::int64_t>& earlier_idle)
      : task_(task), options_(options), ranks_(static_cast<std::size_t>(task.stages)) {
    allowance_.assign(ranks_.size(), 0);
    for (std::size_t rank = 0; rank < earlier_idle.size(); ++rank) {
      allowance_[rank] = std::ranges::max(earlier_idle) - earlier_idle[rank];
    }
  }

  void plan() {
    first_microbatch();
    even_out();
    for (std::int32_t turn = 0; turn < 2 * task_.microbatches; ++turn) {
      backwards();
      forwards();
    }
    for (std::int32_t rank = 0; rank < task_.stages; ++rank) {
      while (!at(rank).unfinished.empty()) put_weight(rank);
    }
  }

  std::vector<std::int64_t> idle() const {
    std::vector<std::int64_t> idle;
    for (const VAutoRank& rank : ranks_) idle.push_back(rank.idle);
    return idle;
  }
  std::vector<RankOrder> take_orders() {
    std::vector<RankOrder> orders;
    for (VAutoRank& rank : ranks_) orders.push_back(std::move(rank.order));
    return orders;
  }

 private:
  VAutoRank& at(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  // Returns the rank that sends messages of a kind to this one, if it is another rank.
  std::optional<std::int32_t> sender(std::int32_t rank, Kind kind) const {
    if (kind == kForwardDown || kind == kBackwardDown) {
      return rank == 0 ? std::nullopt : std::optional(rank - 1);
    }
    return rank + 1 == task_.stages ? std::nullopt : std::optional(rank + 1);
  }

  // Returns when the rank's next message of this kind arrives. REQUIRES: if it is a message, its
  // sender is planned.
  std::optional<std::int64_t> arrival(std::int32_t rank, Kind kind) {
    const std::optional<std::int32_t> from = sender(rank, kind);
    if (!from) return std::nullopt;
    return at(*from).ends[kind][at(rank).ends[kind].size()] + task_.costs.send;
  }

  bool is_sent(std::int32_t rank, Kind kind) {
    const std::optional<std::int32_t> from = sender(rank, kind);
    return !from || at(*from).count(kind) > at(rank).count(kind);
  }

  std::int64_t slack(std::int32_t rank) {
    return std::max(most_idle_, allowance_[static_cast<std::size_t>(rank)]) - at(rank).idle;
  }

  void put(std::int32_t number, Kind kind) {
    VAutoRank& rank = at(number);
    const bool is_forward = kind == kForwardDown || kind == kForwardUp;
    const std::int32_t chunk = kind == kForwardUp || kind == kBackwardDown ? 1 : 0;
    const std::int64_t start = std::max(rank.free_at, arrival(number, kind).value_or(0));
    if (rank.count(kForwardDown) > 0) rank.idle += start - rank.free_at;
    most_idle_ = std::max(most_idle_, rank.idle);
    rank.free_at = start + (is_forward ? task_.costs.forward : task_.costs.backward_input);
    const std::int32_t i = rank.count(kind);
    rank.ends[kind].push_back(rank.free_at);
    if (is_forward) {
      ++rank.in_flight;
      rank.order.push_back(forward_op(i, chunk));
    } else {
      rank.order.push_back(input_op(i, chunk));
      rank.unfinished.push_back(weight_op(i, chunk));
    }
  }

  void put_weight(std::int32_t number) {
    VAutoRank& rank = at(number);
    rank.free_at += task_.costs.backward_weight;
    --rank.in_flight;
    rank.order.push_back(rank.unfinished.front());
    rank.unfinished.pop_front();
  }

  // Runs weight gradients until the next message of this kind arrives.
  void fill(std::int32_t number, Kind kind, bool even_if_longer) {
    const std::optional<std::int64_t> comes = arrival(number, kind);
    if (!comes) return;
    VAutoRank& rank = at(number);
    while (!rank.unfinished.empty() && *comes >= rank.free_at + task_.costs.backward_weight) {
      put_weight(number);
    }
    if (rank.unfinished.empty() || !even_if_longer) return;
    if (*comes - rank.free_at > slack(number)) put_weight(number);
  }

  // Plans the first micro-batch's forward, down and up, and the forwards that fit in between.
  void first_microbatch() {
    for (std::int32_t rank = 0; rank < task_.stages; ++rank) put(rank, kForwardDown);
    for (std::int32_t rank = task_.stages - 1; rank >= 0; --rank) {
      if (const std::optional<std::int64_t> comes = arrival(rank, kForwardUp)) {
        while (at(rank).in_flight + 2 + 2 * rank <= task_.memory_limit &&
               at(rank).free_at + task_.costs.forward <= *comes &&
               at(rank).count(kForwardDown) < task_.microbatches) {
          for (std::int32_t above = 0; above <= rank; ++above) put(above, kForwardDown);
        }
      }
      put(rank, kForwardUp);
    }
  }

  // Adds rows of forwards until every rank has run as many as rank 0.
  void even_out() {
    Kind kind = kForwardDown;
    for (std::int32_t rank = 1; rank < task_.stages; ++rank) {
      const auto behind = [&] {
        const VAutoRank& here = at(rank);
        const VAutoRank& above = at(rank - 1);
        return here.count(kForwardDown) + here.count(kForwardUp) <
                   above.count(kForwardDown) + above.count(kForwardUp) ||
               (here.count(kForwardUp) <= above.count(kForwardUp) &&
                above.count(kForwardUp) < task_.microbatches);
      };
      while (behind()) {
        for (std::int32_t below = task_.stages - 1; below >= rank; --below) {
          if (at(below).count(kind) < task_.microbatches) put(below, kind);
        }
        kind = kind == kForwardDown ? kForwardUp : kForwardDown;
      }
    }
  }

  Kind next_backward(std::int32_t number) {
    const VAutoRank& rank = at(number);
    if (rank.count(kBackwardUp) >= rank.count(kBackwardDown)) return kBackwardDown;
    if (is_sent(number, kBackwardUp) || rank.count(kBackwardDown) == task_.microbatches)
      return kBackwardUp;
    return kBackwardDown;
  }

  void backwards() {
    std::vector<std::int32_t> down;
    std::vector<std::int32_t> up;
    for (std::int32_t rank = 0; rank < task_.stages; ++rank) {
      (next_backward(rank) == kBackwardUp ? up : down).push_back(rank);
    }
    std::ranges::reverse(up);
    for (const std::int32_t rank : up) {
      fill(rank, kBackwardUp, true);
      put(rank, kBackwardUp);
    }
    for (const std::int32_t rank : down) {
      fill(rank, kBackwardDown, options_.fill_before_backward);
      put(rank, kBackwardDown);
    }
  }

  std::optional<Kind> next_forward(std::int32_t number) {
    const VAutoRank& rank = at(number);
    if (rank.count(kForwardUp) >= rank.count(kForwardDown)) return kForwardDown;
    if (is_sent(number, kForwardUp)) return kForwardUp;
    if (rank.count(kForwardDown) < task_.microbatches && is_sent(number, kForwardDown))
      return kForwardDown;
    return std::nullopt;
  }

  void forwards() {
    for (std::int32_t rank = 0; rank < task_.stages; ++rank) {
      if (at(rank).count(kForwardUp) >= task_.microbatches) continue;
      const std::optional<Kind> kind = next_forward(rank);
      if (!kind) continue;
      while (at(rank).in_flight + 1 > task_.memory_limit && !at(rank).unfinished.empty()) {
        put_weight(rank);
      }
      fill(rank, *kind, options_.fill_before_forward);
      put(rank, *kind);
    }
  }

  VAutoTask task_;
  VAutoOptions options_;
  std::vector<VAutoRank> ranks_;
  std::int64_t most_idle_ = 0;
  std::vector<std::int64_t> allowance_;  // by rank: idle time below the worst, last attempt
};

struct VAutoAttempt {
  std::int64_t most_idle = 0;
  std::vector<RankOrder> orders{};
};

// Plans again and again with the idle times of the last attempt, while that helps.
VAutoAttempt plan_repeatedly(const VAutoTask& task, VAutoOptions options) {
  VAutoAttempt best;
  std::vector<std::int64_t> idle;
  for (bool first = true;; first = false) {
    VAutoPlanner planner(task, options, idle);
    planner.plan();
    idle = planner.idle();
    const std::int64_t most_idle = std::ranges::max(idle);
    if (!first && most_idle >= best.most_idle) return best;
    best = {most_idle, planner.take_orders()};
  }
}

}  // namespace

PipelineSchedule zbv_auto(std::int32_t stages, std::int32_t microbatches,
                          const PipelineCosts& costs, std::int64_t memory_limit) {
  assert(stages >= 1 && microbatches >= 1 && memory_limit >= 2 * stages);
  const VAutoTask task{stages, microbatches, costs, memory_limit};
  std::optional<VAutoAttempt> best;
  for (int variant = 0; variant < 4; ++variant) {
    VAutoAttempt attempt = plan_repeatedly(task, {.fill_before_backward = (variant & 2) == 0,
                                                  .fill_before_forward = (variant & 1) == 0});
    if (!best || attempt.most_idle < best->most_idle) best = std::move(attempt);
  }
  return {.microbatches = microbatches,
          .chunks = 2,
          .placement = Placement::kV,
          .ranks = std::move(best->orders)};
}

}  // namespace stepsim
