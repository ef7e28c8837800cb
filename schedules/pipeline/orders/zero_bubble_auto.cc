#include "schedules/pipeline/orders/zero_bubble_auto.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

struct AutoOptions {
  bool in_time = true;      // the warm-up must end before the first gradient comes
  bool put_off = true;      // a forward may wait for a later turn
  bool always_fill = true;  // runs a W even if it is longer than the gap
};

struct AutoTask {
  std::int32_t stages = 0;
  std::int32_t microbatches = 0;
  StageCosts costs;
  std::int64_t memory_limit = 0;  // in units of `memory`
  ActivationMemory memory{};
};

// AutoRank is one rank while it is planned.
struct AutoRank {
  std::int64_t free_at = 0;
  std::int64_t held = 0;  // memory held now
  std::int64_t idle = 0;  // idle time since its first forward began
  std::int64_t first_start = 0;
  std::vector<std::int64_t> forward_ends{};
  std::vector<std::int64_t> input_ends{};
  std::int32_t weights = 0;
  RankOrder order{};

  std::int32_t forwards() const { return static_cast<std::int32_t>(forward_ends.size()); }
  std::int32_t inputs() const { return static_cast<std::int32_t>(input_ends.size()); }
  bool has_weights() const { return weights < inputs(); }
};

class AutoPlanner {
 public:
  AutoPlanner(const AutoTask& task, AutoOptions options)
      : task_(task), options_(options), ranks_(static_cast<std::size_t>(task.stages)) {}

  void plan() {
    warm_up();
    for (std::int32_t i = 1; i < task_.microbatches; ++i) turn(i);
    for (std::int32_t rank = 0; rank < task_.stages; ++rank) {
      while (at(rank).has_weights()) put_weight(rank);
    }
  }

  // Returns the longest time from a rank's first start to its last end.
  std::int64_t span() const {
    std::int64_t longest = 0;
    for (const AutoRank& rank : ranks_) {
      longest = std::max(longest, rank.free_at - rank.first_start);
    }
    return longest;
  }

  std::vector<RankOrder> take_orders() {
    std::vector<RankOrder> orders;
    for (AutoRank& rank : ranks_) orders.push_back(std::move(rank.order));
    return orders;
  }

 private:
  AutoRank& at(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const PipelineCosts& costs(std::int32_t rank) const { return task_.costs.at(rank); }

  std::int64_t forward_arrival(std::int32_t rank, std::int32_t microbatch) {
    return at(rank - 1).forward_ends[static_cast<std::size_t>(microbatch)] + costs(rank - 1).send;
  }
  std::int64_t gradient_arrival(std::int32_t rank, std::int32_t microbatch) {
    return at(rank + 1).input_ends[static_cast<std::size_t>(microbatch)] + costs(rank).send;
  }

  // Returns how much longer this rank may idle before it becomes the rank that idles most.
  std::int64_t slack(std::int32_t rank) { return most_idle_ - at(rank).idle; }

  void run(AutoRank& rank, std::int64_t start, std::int64_t time) {
    if (rank.forwards() == 0) {
      rank.first_start = start;
    } else {
      rank.idle += start - rank.free_at;
      most_idle_ = std::max(most_idle_, rank.idle);
    }
    rank.free_at = start + time;
  }

  void put_forward(std::int32_t number) {
    AutoRank& rank = at(number);
    const std::int32_t i = rank.forwards();
    const std::int64_t arrival = number == 0 ? rank.free_at : forward_arrival(number, i);
    run(rank, std::max(rank.free_at, arrival), costs(number).forward);
    rank.forward_ends.push_back(rank.free_at);
    rank.held += task_.memory.forward;
    rank.order.push_back(forward_op(i));
  }

  void put_input(std::int32_t number) {
    AutoRank& rank = at(number);
    const std::int32_t i = rank.inputs();
    const std::int64_t arrival =
        number + 1 == task_.stages ? rank.free_at : gradient_arrival(number, i);
    run(rank, std::max(rank.free_at, arrival), costs(number).backward_input);
    rank.held -= task_.memory.forward - task_.memory.weight;
    rank.input_ends.push_back(rank.free_at);
    rank.order.push_back(input_op(i));
  }

  void put_weight(std::int32_t number) {
    AutoRank& rank = at(number);
    run(rank, rank.free_at, costs(number).backward_weight);
    rank.held -= task_.memory.weight;
    rank.order.push_back(weight_op(rank.weights++));
  }

  // Runs weight gradients until `arrival`.
  void fill(std::int32_t number, std::int64_t arrival) {
    AutoRank& rank = at(number);
    while (rank.has_weights() && rank.free_at + costs(number).backward_weight <= arrival) {
      put_weight(number);
    }
    if (!rank.has_weights() || rank.free_at >= arrival) return;
    if (options_.always_fill || arrival - rank.free_at > slack(number)) put_weight(number);
  }

  void warm_up() {
    const std::int32_t last = task_.stages - 1;
    for (std::int32_t rank = 0; rank <= last; ++rank) put_forward(rank);
    std::vector<std::int32_t> more(static_cast<std::size_t>(task_.stages), 0);
    const auto more_of = [&](std::int32_t rank) -> std::int32_t& {
      return more[static_cast<std::size_t>(rank)];
    };
    std::int64_t gradient = at(last).free_at + costs(last).backward_input;
    for (std::int32_t rank = last - 1; rank >= 0; --rank) {
      std::int64_t time = at(rank).free_at;
      std::int64_t held = at(rank).held + task_.memory.forward;
      const std::int64_t arrival = gradient + costs(rank).send;
      const std::int64_t forward = costs(rank).forward;
      while (1 + more_of(rank) < task_.microbatches && held <= task_.memory_limit) {
        if (options_.in_time ? time + forward > arrival : time >= arrival) break;
        time += forward;
        held += task_.memory.forward;
        ++more_of(rank);
      }
      gradient = std::max(time, arrival) + costs(rank).backward_input;
    }
    for (std::int32_t rank = 1; rank <= last; ++rank) {
      // With uneven stages a rank may have time for all forwards when the previous rank has not.
      // The authors' code would then wait for a forward that comes later.
      more_of(rank) = std::min(more_of(rank), more_of(rank - 1));
      while (more_of(rank) > 0 && more_of(rank) >= more_of(rank - 1) &&
             1 + more_of(rank) < task_.microbatches) {
        --more_of(rank);
      }
    }
    for (std::int32_t rank = 0; rank <= last; ++rank) {
      for (std::int32_t i = 0; i < more_of(rank); ++i) put_forward(rank);
    }
    for (std::int32_t rank = last; rank >= 0; --rank) put_input(rank);
  }

  // Returns whether the rank should run another forward before its next backward.
  bool wants_forward(std::int32_t number) {
    const AutoRank& rank = at(number);
    if (rank.forwards() >= task_.microbatches) return false;
    if (!options_.put_off || number + 1 >= task_.stages) return true;
    const AutoRank& next = at(number + 1);
    if (rank.forwards() < next.forwards() + 2) return true;
    const PipelineCosts& of_next = costs(number + 1);
    const std::int64_t gradient =
        next.free_at + of_next.forward + of_next.backward_input + costs(number).send;
    if (rank.free_at >= gradient) return false;
    const std::int64_t missing = rank.held + task_.memory.forward - task_.memory_limit;
    const std::int64_t each = task_.memory.weight;
    const std::int64_t to_free = missing <= 0 ? 0 : (missing + each - 1) / each;
    const std::int64_t own = costs(number).forward + to_free * costs(number).backward_weight;
    if (rank.free_at + own <= gradient) return true;
    return gradient - rank.free_at > slack(number);
  }

  // Runs a forward on the ranks that want one, then backward i on all ranks.
  void turn(std::int32_t i) {
    std::int32_t first = 0;  // this rank and all below it want one
    for (std::int32_t rank = 0; rank < task_.stages; ++rank) {
      if (!wants_forward(rank)) first = rank + 1;
    }
    for (std::int32_t rank = first; rank < task_.stages; ++rank) {
      while (at(rank).held + task_.memory.forward > task_.memory_limit) put_weight(rank);
      if (rank > 0) fill(rank, forward_arrival(rank, at(rank).forwards()));
      put_forward(rank);
    }
    for (std::int32_t rank = task_.stages - 1; rank >= 0; --rank) {
      if (rank + 1 < task_.stages) fill(rank, gradient_arrival(rank, i));
      if (rank == 0 && at(0).forwards() == task_.microbatches) {
        while (at(0).has_weights()) put_weight(0);
      }
      put_input(rank);
    }
  }

  AutoTask task_;
  AutoOptions options_;
  std::vector<AutoRank> ranks_;
  std::int64_t most_idle_ = 0;
};

}  // namespace

PipelineSchedule zb_auto(std::int32_t stages, std::int32_t microbatches, const StageCosts& costs,
                         std::int64_t memory_limit, const ActivationMemory& memory) {
  assert(stages >= 1 && microbatches >= 1 && memory_limit >= 1);
  assert(memory.weight > 0 && memory.weight <= memory.forward);
  PipelineSchedule best{.microbatches = microbatches};
  std::optional<std::int64_t> shortest;
  const std::int64_t limit = std::min<std::int64_t>(memory_limit, microbatches);
  for (int variant = 0; variant < 8; ++variant) {
    AutoPlanner planner({stages, microbatches, costs, limit * memory.forward, memory},
                        {.in_time = (variant & 4) == 0,
                         .put_off = (variant & 2) == 0,
                         .always_fill = (variant & 1) == 0});
    planner.plan();
    if (shortest && planner.span() >= *shortest) continue;
    shortest = planner.span();
    best.ranks = planner.take_orders();
  }
  return best;
}

BubbleFormula zb_auto_1p_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "(P - 1)(f + b - w)", "Qi et al., arXiv 2401.10241")
      .value((n.p - 1) * (n.f + n.b - n.w))
      .needs_equal_times()
      .needs_free_sends()
      .needs_microbatches(2 * n.p, "2 P")
      .needs_own_memory()
      .take();
}

BubbleFormula zb_auto_2p_bubble(const BubbleNumbers& n) {
  return BubbleEntry(n, "0", "Qi et al., arXiv 2401.10241")
      .of_span()
      .needs_equal_times()
      .needs_free_sends()
      .needs_microbatches(2 * n.p, "2 P")
      .needs_own_memory()
      .take();
}

}  // namespace stepsim
