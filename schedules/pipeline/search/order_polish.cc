#include "schedules/pipeline/search/order_polish.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/pipeline/search/order_lists.h"

namespace stepsim {
namespace {

constexpr std::size_t kUsualReach = 2;
constexpr std::size_t kFarReach = 12;  // used in every fourth step

// Returns whether the first op may stand before the second.
bool may_precede(const PipelineOp& first, const PipelineOp& second) {
  const auto step = [](PipelineOpKind kind) {
    if (kind == PipelineOpKind::kForward) return 0;
    return kind == PipelineOpKind::kBackwardInput ? 1 : 2;
  };
  if (first.chunk != second.chunk) {
    // Deeper chunks of the same micro-batch run later in the forward and earlier in the backward.
    if (first.microbatch != second.microbatch) return true;
    if (first.kind != second.kind) {
      return step(first.kind) < step(second.kind) || step(first.kind) == 2 ||
             step(second.kind) == 2;
    }
    if (first.kind == PipelineOpKind::kBackwardWeight) return true;
    return (first.chunk < second.chunk) == (first.kind == PipelineOpKind::kForward);
  }
  if (first.kind == second.kind) return first.microbatch < second.microbatch;
  return first.microbatch != second.microbatch || step(first.kind) < step(second.kind);
}

// Mover makes small moves in the lists and can undo each of them.
class Mover {
 public:
  Mover(OrderLists& orders, std::int64_t memory_limit)
      : orders_(orders), memory_limit_(memory_limit) {}

  struct Move {
    std::size_t rank = 0;
    std::size_t from = 0;
    std::size_t to = 0;
  };

  // Moves an op. Returns false if it would pass an op that it must not pass, or if memory is full.
  bool make(const Move& move) {
    std::vector<std::int32_t>& list = orders_.list(move.rank);
    const PipelineOp& op = orders_.op(list[move.from]);
    const bool is_earlier = move.to < move.from;
    const std::size_t first = is_earlier ? move.to : move.from + 1;
    const std::size_t last = is_earlier ? move.from : move.to + 1;
    for (std::size_t i = first; i < last; ++i) {
      const PipelineOp& passed = orders_.op(list[i]);
      if (!(is_earlier ? may_precede(op, passed) : may_precede(passed, op))) return false;
    }
    shift(move);
    if (fits(list)) return true;
    take_back(move);
    return false;
  }
  void take_back(const Move& move) { shift({move.rank, move.to, move.from}); }

 private:
  void shift(const Move& move) {
    const auto begin = orders_.list(move.rank).begin();
    const auto place = [&](std::size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
    if (move.to < move.from) {
      std::rotate(place(move.to), place(move.from), place(move.from) + 1);
    } else {
      std::rotate(place(move.from), place(move.from) + 1, place(move.to) + 1);
    }
  }
  bool fits(const std::vector<std::int32_t>& list) const {
    std::int64_t in_flight = 0;
    for (const std::int32_t id : list) {
      const PipelineOpKind kind = orders_.op(id).kind;
      if (kind == PipelineOpKind::kForward && ++in_flight > memory_limit_) return false;
      if (kind == PipelineOpKind::kBackwardWeight) --in_flight;
    }
    return true;
  }

  OrderLists& orders_;
  std::int64_t memory_limit_;
};

}  // namespace

PipelineSchedule polish(PipelineSchedule schedule, const StageCosts& costs,
                        const PolishLimits& limits) {
  OrderLists orders(schedule, costs);
  Mover mover(orders, limits.memory_limit);
  const auto ranks = static_cast<std::int64_t>(orders.ranks());
  const auto energy = [&](const OrderLists::Spans& spans) {
    return ranks * spans.longest + spans.all / ranks;
  };
  OrderLists::Spans now = *orders.spans();
  OrderLists::Spans best = now;
  std::vector<std::vector<std::int32_t>> best_lists = orders.lists();
  const std::int64_t most_worse = ranks * limits.worse;
  std::mt19937 random(limits.seed);
  const auto below = [&random](std::size_t count) { return random() % count; };
  for (std::int64_t step = 0; step < limits.steps && best.longest > limits.enough; ++step) {
    const std::size_t rank = below(orders.ranks());
    const std::size_t ops = orders.list(rank).size();
    const std::size_t from = below(ops);
    const std::size_t by = 1 + below(below(4) == 0 ? kFarReach : kUsualReach);
    const std::size_t to = below(2) == 0 ? from - std::min(from, by) : std::min(ops - 1, from + by);
    const Mover::Move move{rank, from, to};
    if (to == from || !mover.make(move)) continue;
    const std::optional<OrderLists::Spans> spans = orders.spans();
    const std::int64_t worse = most_worse * (limits.steps - step) / limits.steps;
    if (!spans || energy(*spans) > energy(now) + worse) {
      mover.take_back(move);
      continue;
    }
    now = *spans;
    if (std::tuple(now.longest, now.all) >= std::tuple(best.longest, best.all)) continue;
    best = now;
    best_lists = orders.lists();
  }
  schedule.ranks = orders.orders(best_lists);
  return schedule;
}

}  // namespace stepsim
