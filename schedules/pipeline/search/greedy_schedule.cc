#include "schedules/pipeline/search/greedy_schedule.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

namespace stepsim {
namespace {

class Player {
 public:
  Player(const ScheduleShape& shape, const StageCosts& costs, const GreedyPolicy& policy)
      : shape_(shape), costs_(costs), policy_(policy), ranks_(at(shape.stages)) {
    schedule_ = schedule_by_rank(shape, [](std::int32_t) { return RankOrder(); });
    const std::size_t stages = at(stage_count(schedule_));
    activations_.resize(stages);
    gradients_.resize(stages);
    activations_[0].assign(at(shape.microbatches), 0);
    for (Rank& rank : ranks_) {
      rank.forwards.assign(at(shape.chunks), 0);
      rank.inputs.assign(at(shape.chunks), 0);
    }
    for (std::int32_t rank = 0; rank < shape.stages; ++rank) wake(rank, 0);
  }

  PipelineSchedule play() {
    while (!turns_.empty()) {
      const auto [time, number] = turns_.top();
      turns_.pop();
      Rank& rank = ranks_[at(number)];
      if (time != rank.next_turn) continue;  // it was woken earlier
      now_ = time;
      rank.next_turn.reset();
      rank.time = std::max(rank.time, time);
      take_turn(number);
    }
    return std::move(schedule_);
  }

 private:
  struct Rank {
    std::int64_t time = 0;                    // when the rank becomes free
    std::optional<std::int64_t> next_turn{};  // unset: waits for an arrival
    std::int64_t in_flight = 0;
    std::vector<std::int32_t> forwards{};  // by chunk
    std::vector<std::int32_t> inputs{};
    std::deque<PipelineOp> due{};  // W that may run
  };

  // Candidate is an op that may be next, and when its input is there.
  struct Candidate {
    PipelineOp op{};
    std::int64_t arrival = 0;
    bool has_room = true;
  };

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  void wake(std::int32_t number, std::int64_t time) {
    Rank& rank = ranks_[at(number)];
    time = std::max(time, rank.time);
    if (rank.next_turn && *rank.next_turn <= time) return;
    rank.next_turn = time;
    turns_.emplace(time, number);
  }

  // Returns the rank's candidates, best first.
  std::vector<Candidate>& candidates(std::int32_t number) {
    const Rank& rank = ranks_[at(number)];
    candidates_.clear();
    const auto add = [&](bool is_forward) {
      for (std::int32_t chunk = shape_.chunks; chunk-- > 0;) {
        const std::size_t stage = at(stage_of(schedule_, number, chunk));
        const std::int32_t i = (is_forward ? rank.forwards : rank.inputs)[at(chunk)];
        const auto& arrivals = (is_forward ? activations_ : gradients_)[stage];
        if (i == shape_.microbatches || at(i) >= arrivals.size()) continue;
        const std::int64_t kept_free = shape_.chunks - 1 - chunk;
        candidates_.push_back(
            {is_forward ? forward_op(i, chunk) : input_op(i, chunk), arrivals[at(i)],
             !is_forward || rank.in_flight + 1 + kept_free <= policy_.limits[at(number)]});
      }
    };
    add(policy_.forward_first);
    add(!policy_.forward_first);
    return candidates_;
  }

  void take_turn(std::int32_t number) {
    Rank& rank = ranks_[at(number)];
    std::optional<std::int64_t> next;
    bool needs_room = false;
    for (const Candidate& candidate : candidates(number)) {
      if (!candidate.has_room) {
        needs_room = needs_room || candidate.arrival <= rank.time;
        continue;
      }
      if (candidate.arrival <= rank.time) {
        const PipelineOp op = candidate.op;
        return run(number, op);
      }
      next = std::min(next.value_or(candidate.arrival), candidate.arrival);
    }
    const std::int64_t end =
        rank.time + (rank.due.empty() ? 0 : time_of(schedule_, number, rank.due.front(), costs_));
    const bool has_weight = !rank.due.empty();
    if (has_weight && (needs_room || (next && end <= *next + policy_.patience) || is_done(rank))) {
      return run(number, rank.due.front());
    }
    if (next) return wake(number, *next);
    // No message is on its way: the next one will be sent by an op that has not begun.
    if (has_weight) run(number, rank.due.front());
  }

  bool is_done(const Rank& rank) const {
    return std::ranges::all_of(rank.inputs,
                               [&](std::int32_t count) { return count == shape_.microbatches; });
  }

  void run(std::int32_t number, PipelineOp op) {
    Rank& rank = ranks_[at(number)];
    rank.time += time_of(schedule_, number, op, costs_);
    schedule_.ranks[at(number)].push_back(op);
    const std::int32_t stage = stage_of(schedule_, number, op.chunk);
    if (op.kind == PipelineOpKind::kForward) {
      ++rank.in_flight;
      ++rank.forwards[at(op.chunk)];
      const bool is_last = stage + 1 == stage_count(schedule_);
      arrive(number, rank.time, is_last ? stage : stage + 1, is_last ? gradients_ : activations_);
    } else if (op.kind == PipelineOpKind::kBackwardInput) {
      ++rank.inputs[at(op.chunk)];
      rank.due.push_back(weight_of(op));
      if (stage > 0) arrive(number, rank.time, stage - 1, gradients_);
    } else {
      --rank.in_flight;
      rank.due.pop_front();
    }
    wake(number, rank.time);
  }

  void arrive(std::int32_t from, std::int64_t end, std::int32_t stage,
              std::vector<std::vector<std::int64_t>>& arrivals) {
    const std::int32_t to = rank_of(schedule_, 0, stage);
    const std::int64_t time = end + (to == from ? 0 : costs_.at(0).send);
    arrivals[at(stage)].push_back(time);
    if (to != from) wake(to, now_);
  }

  const ScheduleShape& shape_;
  const StageCosts& costs_;
  const GreedyPolicy& policy_;
  PipelineSchedule schedule_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::int64_t>> activations_;  // by stage: arrival, by micro-batch
  std::vector<std::vector<std::int64_t>> gradients_;
  std::vector<Candidate> candidates_;
  std::int64_t now_ = 0;
  using Turn = std::pair<std::int64_t, std::int32_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
};

}  // namespace

PipelineSchedule greedy_schedule(const ScheduleShape& shape, const StageCosts& costs,
                                 const GreedyPolicy& policy) {
  assert(policy.limits.size() == static_cast<std::size_t>(shape.stages));
  return Player(shape, costs, policy).play();
}

std::vector<GreedyPolicy> greedy_policies(const ScheduleShape& shape, const StageCosts& costs,
                                          std::int64_t memory_limit) {
  std::vector<GreedyPolicy> policies;
  const std::int64_t w = longest_stage(costs).backward_weight;
  const std::int64_t chunks = shape.chunks;
  // Quarters of 1F1B's limit. 0: all of the memory on every rank.
  for (const std::int64_t quarters : {0, 3, 4, 5, 6, 7, 8, 10, 12}) {
    std::vector<std::int64_t> limits;
    for (std::int64_t rank = 0; rank < shape.stages; ++rank) {
      const std::int64_t like_1f1b = (quarters * chunks * (shape.stages - rank) + 3) / 4;
      limits.push_back(
          quarters == 0 ? memory_limit
                        : std::clamp(like_1f1b, std::min(2 * chunks, memory_limit), memory_limit));
    }
    for (const std::int64_t patience : {std::int64_t{0}, w / 4, w / 2, w}) {
      for (const bool forward_first : {false, true}) {
        policies.push_back({limits, patience, forward_first});
      }
    }
  }
  return policies;
}

}  // namespace stepsim
