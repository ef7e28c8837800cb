#include "schedules/pipeline/optimal_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/pipeline/greedy_schedule.h"
#include "schedules/pipeline/make_schedule.h"
#include "schedules/pipeline/order_polish.h"
#include "schedules/pipeline/order_search.h"
#include "schedules/pipeline/replay.h"

namespace stepsim {
namespace {

constexpr std::int64_t kExactShare = 2;   // half of the effort goes into the exact search
constexpr std::int64_t kClimbShare = 4;   // a quarter into list scheduling
constexpr std::int64_t kReplanShare = 8;  // an eighth into the planners with other times
constexpr std::int64_t kPolishShare = 8;  // an eighth into moving single ops
// What takes as long as a word of the search, an op: of list scheduling and a replay, of planning
// in all variants, of a replay.
constexpr std::int64_t kWordsAnOp = 16;
constexpr std::int64_t kWordsAPlannedOp = 80;
constexpr std::int64_t kWordsAReplayedOp = 6;
constexpr std::int64_t kMakespanShare = 8;  // an eighth into the makespan, on top
constexpr std::int64_t kNoWidth = std::int64_t{1} << 40;
constexpr std::int64_t kNarrowestBeam = 8;

// A schedule and what counts.
struct Candidate {
  PipelineSchedule schedule;
  std::string origin;
  std::int64_t span_bubble = 0;
  std::int64_t makespan = 0;

  std::tuple<std::int64_t, std::int64_t> rank() const { return {span_bubble, makespan}; }
};

class Optimizer {
 public:
  explicit Optimizer(const OptimalRequest& request)
      : request_(request),
        memory_limit_(std::min(request.memory_limit.value_or(forwards()), forwards())),
        effort_left_(request.effort) {
    unit_ = unit_of(request.costs);
    costs_ = in_units(request.costs, unit_);
  }

  OptimalSchedule run() {
    if (request_.placement) {
      placements_ = {*request_.placement};
    } else {
      placements_ = {Placement::kLoop};
      if (request_.chunks > 1 && request_.stages > 1) placements_.push_back(Placement::kV);
    }
    seed();
    seed_policies();
    std::int64_t bound = lower_bound(placements_.front());
    for (const Placement placement : placements_) bound = std::min(bound, lower_bound(placement));
    bool is_proven = best_->span_bubble <= bound;
    if (!is_proven) is_proven = search_spans(bound);
    shorten_makespan();
    return {.schedule = std::move(best_->schedule),
            .objective = best_->span_bubble * unit_,
            .lower_bound = (is_proven ? best_->span_bubble : bound) * unit_,
            .is_proven = is_proven,
            .origin = std::move(best_->origin),
            .states = states_};
  }

 private:
  std::int64_t forwards() const { return request_.microbatches * request_.chunks; }  // of a rank
  ScheduleShape shape(Placement placement) const {
    return {.stages = static_cast<std::int32_t>(request_.stages),
            .microbatches = static_cast<std::int32_t>(request_.microbatches),
            .chunks = static_cast<std::int32_t>(request_.chunks),
            .placement = placement};
  }

  using Rank = std::tuple<std::int64_t, std::int64_t>;  // the smaller, the better

  // What it comes to, if it keeps within the memory.
  std::optional<Rank> offer(PipelineSchedule schedule, std::string origin) {
    const PipelineReplay replayed = replay(schedule, costs_);
    if (*std::ranges::max_element(replayed.peak_in_flight) > memory_limit_) return std::nullopt;
    const Rank rank(replayed.span_bubble, replayed.makespan);
    Candidate candidate{std::move(schedule), std::move(origin), replayed.span_bubble,
                        replayed.makespan};
    if (!best_ || rank < best_->rank()) best_ = std::move(candidate);
    return rank;
  }

  void seed() {
    for (const Placement placement : placements_) offer(one_at_a_time(placement), "sequential");
    for (const ScheduleName name : kScheduleNames) {
      ScheduleRequest request{.name = name,
                              .stages = request_.stages,
                              .microbatches = request_.microbatches,
                              .chunks = request_.chunks,
                              .costs = costs_};
      if (plans_by_cost(name)) request.memory_limit = memory_limit_;
      if (!check(request).empty()) continue;
      PipelineSchedule schedule = make_schedule(request);
      if (std::ranges::find(placements_, schedule.placement) == placements_.end()) continue;
      offer(split_backwards(schedule), std::string(name_of(name)));
    }
  }

  // A policy of list scheduling, and what came of it.
  struct Guided {
    Placement placement{};
    GreedyPolicy policy{};
    Rank rank{};
  };

  std::optional<Rank> play(Placement placement, const GreedyPolicy& policy) {
    const ScheduleShape way = shape(placement);
    ++states_;
    effort_left_ -= kWordsAnOp * ops();
    return offer(greedy_schedule(way, costs_, policy), "list scheduling");
  }

  void seed_policies() {
    for (const Placement placement : placements_) {
      for (GreedyPolicy& policy : greedy_policies(shape(placement), costs_, memory_limit_)) {
        const std::optional<Rank> rank = play(placement, policy);
        if (rank) guided_.push_back({placement, std::move(policy), *rank});
      }
    }
    std::ranges::stable_sort(guided_, {}, &Guided::rank);
    constexpr std::size_t kKept = 4;
    if (guided_.size() > kKept) guided_.resize(kKept);
  }

  std::int64_t ops() const { return 3 * forwards() * request_.stages; }

  // The authors' planners (ZB auto, ZB-V) are greedy: told somewhat other times, or less memory,
  // they plan otherwise, at times better.
  void replan(std::int64_t bound) {
    std::mt19937 random(1);
    const auto below = [&random](std::int64_t count) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
    };
    constexpr std::int64_t kMost = 400;
    constexpr std::int64_t kScale = 100;
    const std::int64_t enough = effort_left_ - request_.effort / kReplanShare;
    for (const ScheduleName name :
         {ScheduleName::kZeroBubbleAuto2P, ScheduleName::kZeroBubbleVAuto}) {
      ScheduleRequest request{.name = name,
                              .stages = request_.stages,
                              .microbatches = request_.microbatches,
                              .chunks = request_.chunks};
      const std::int64_t least = name == ScheduleName::kZeroBubbleVAuto ? 2 * request_.stages : 1;
      if (least > memory_limit_) continue;
      for (std::int64_t i = 0; i < kMost && effort_left_ > enough; ++i) {
        const auto other = [&](std::int64_t time) { return time * (60 + below(81)); };
        request.costs = {other(costs_.forward), other(costs_.backward_input),
                         other(costs_.backward_weight), below(4 * kScale * costs_.send + 1)};
        request.memory_limit = memory_limit_;
        if (below(2) == 0) request.memory_limit = least + below(memory_limit_ - least + 1);
        if (!check(request).empty()) break;
        PipelineSchedule schedule = make_schedule(request);
        if (std::ranges::find(placements_, schedule.placement) == placements_.end()) break;
        effort_left_ -= kWordsAPlannedOp * ops();
        ++states_;
        offer(std::move(schedule), "planning with other times");
        if (best_->span_bubble <= bound || !goes_on()) return;
      }
    }
  }

  void polish_best(std::int64_t bound) {
    const std::int64_t steps = request_.effort / kPolishShare / (kWordsAReplayedOp * ops());
    effort_left_ -= steps * kWordsAReplayedOp * ops();
    states_ += steps;
    offer(polish(best_->schedule, costs_,
                 {.memory_limit = memory_limit_, .steps = steps, .enough = bound}),
          "search");
  }

  // Small changes of the best policies, kept where they do no harm.
  void climb(std::int64_t bound) {
    std::mt19937 random(1);
    const auto below = [&random](std::size_t count) { return random() % count; };
    const std::int64_t enough = effort_left_ - request_.effort / kClimbShare;
    for (std::size_t turn = 0; effort_left_ > enough && !guided_.empty(); ++turn) {
      if (best_->span_bubble <= bound || !goes_on()) return;
      Guided& guided = guided_[turn % guided_.size()];
      GreedyPolicy policy = guided.policy;
      const std::size_t ranks = policy.limits.size();
      const std::size_t first = below(ranks);
      const std::size_t last = below(3) == 0 ? first + below(ranks - first) : first;
      const std::int64_t by = below(2) == 0 ? 1 : -1;
      for (std::size_t rank = first; rank <= last; ++rank) {
        policy.limits[rank] = std::clamp(policy.limits[rank] + by, request_.chunks, memory_limit_);
      }
      if (below(4) == 0) {
        policy.patience =
            static_cast<std::int64_t>(below(static_cast<std::size_t>(costs_.backward_weight) + 1));
      }
      const std::optional<Rank> rank = play(guided.placement, policy);
      if (rank && *rank <= guided.rank) guided = {guided.placement, std::move(policy), *rank};
    }
  }

  // Fits into any memory: one micro-batch through all stages and back, then the next.
  PipelineSchedule one_at_a_time(Placement placement) const {
    return schedule_by_rank(shape(placement), [&](std::int32_t) {
      RankOrder order;
      const auto chunks = static_cast<std::int32_t>(request_.chunks);
      for (std::int32_t i = 0; i < request_.microbatches; ++i) {
        for (std::int32_t chunk = 0; chunk < chunks; ++chunk) order.push_back(forward_op(i, chunk));
        for (std::int32_t chunk = chunks; chunk-- > 0;) {
          order.push_back(input_op(i, chunk));
          order.push_back(weight_op(i, chunk));
        }
      }
      return order;
    });
  }

  // A rank's first B comes when a micro-batch has been to the last stage and back; until then there
  // is nothing to run but the forwards that memory holds.
  std::int64_t lower_bound(Placement placement) const {
    const PipelineSchedule stages =
        schedule_by_rank(shape(placement), [](std::int32_t) { return RankOrder(); });
    const std::int32_t last = stage_count(stages) - 1;
    const auto crosses = [&](std::int32_t stage) {  // from `stage` to the next one
      return rank_of(stages, 0, stage) != rank_of(stages, 0, stage + 1);
    };
    std::int64_t bound = 0;
    for (std::int32_t rank = 0; rank < stages.size(); ++rank) {
      std::int32_t deepest = 0;
      for (std::int32_t chunk = 0; chunk < stages.chunks; ++chunk) {
        deepest = std::max(deepest, stage_of(stages, rank, chunk));
      }
      std::int64_t first_backward = costs_.forward;  // after the rank's first start
      for (std::int32_t stage = rank; stage < last; ++stage) {
        const std::int64_t send = crosses(stage) ? costs_.send : 0;
        first_backward += send + costs_.forward;
        if (stage >= deepest) first_backward += send + costs_.backward_input;
      }
      bound =
          std::max(bound, first_backward - std::min(memory_limit_, forwards()) * costs_.forward);
    }
    return bound;
  }

  std::vector<std::int64_t> deadlines(std::int64_t span_bubble, std::int64_t makespan) const {
    std::vector<std::int64_t> ends;
    for (std::int64_t rank = 0; rank < request_.stages; ++rank) {
      const std::int64_t start = rank * (costs_.forward + costs_.send);
      ends.push_back(std::min(start + forwards() * costs_.all() + span_bubble, makespan));
    }
    return ends;
  }

  OrderSearchResult search(Placement placement, std::vector<std::int64_t> ends,
                           const OrderSearchLimits& limits) {
    OrderSearchRequest search{.shape = shape(placement),
                              .costs = costs_,
                              .memory_limit = memory_limit_,
                              .deadlines = std::move(ends),
                              .limits = limits};
    search.progress = [](void* context) { return static_cast<Optimizer*>(context)->goes_on(); };
    search.progress_context = this;
    OrderSearchResult result = search_orders(search);
    states_ += result.states;
    effort_left_ = result.was_stopped ? 0 : effort_left_ - result.words;
    if (result.best) offer(std::move(*result.best), "search");
    return result;
  }

  bool goes_on() const {
    if (request_.progress == nullptr) return true;
    const double left = static_cast<double>(effort_left_) / static_cast<double>(request_.effort);
    return request_.progress(request_.progress_context, 1 - left);
  }

  // True if no order has a smaller span bubble than the best one now.
  bool search_spans(std::int64_t bound) {
    constexpr std::int64_t kAnyMakespan = std::int64_t{1} << 62;
    bool is_proven = true;
    const auto each = static_cast<std::int64_t>(placements_.size());
    for (const Placement placement : placements_) {
      const OrderSearchLimits limits{kNoWidth, request_.effort / kExactShare / each};
      is_proven =
          search(placement, deadlines(best_->span_bubble - 1, kAnyMakespan), limits).is_complete &&
          is_proven;
      if (best_->span_bubble <= bound) return true;
    }
    if (is_proven) return true;
    for (const auto improve : {&Optimizer::replan, &Optimizer::climb, &Optimizer::polish_best}) {
      (this->*improve)(bound);
      if (best_->span_bubble <= bound) return true;
    }
    // Wider and wider beams, from the start whenever one has found something.
    for (std::int64_t width = kNarrowestBeam; effort_left_ > 0; width *= 2) {
      bool all_seen = true;
      for (const Placement placement : placements_) {
        const OrderSearchResult result = search(
            placement, deadlines(best_->span_bubble - 1, kAnyMakespan), {width, effort_left_});
        if (best_->span_bubble <= bound) return true;
        all_seen = all_seen && result.is_complete;
      }
      if (all_seen) return true;
    }
    return false;
  }

  // As long as that is quick, an order with the same span bubble that ends sooner.
  void shorten_makespan() {
    const std::int64_t each =
        request_.effort / kMakespanShare / static_cast<std::int64_t>(placements_.size());
    for (const Placement placement : placements_) {
      for (std::int64_t width = kNarrowestBeam, left = each; left > 0; width *= 8) {
        const OrderSearchResult result =
            search(placement, deadlines(best_->span_bubble, best_->makespan - 1), {width, left});
        left -= result.words;
        if (result.is_complete || result.was_stopped) break;
      }
    }
  }

  const OptimalRequest& request_;
  PipelineCosts costs_;  // in units
  std::int64_t unit_ = 1;
  std::int64_t memory_limit_;
  std::vector<Placement> placements_;
  std::optional<Candidate> best_;
  std::vector<Guided> guided_;  // the best policies, best first
  std::int64_t effort_left_;
  std::int64_t states_ = 0;
};

}  // namespace

PipelineSchedule split_backwards(const PipelineSchedule& schedule) {
  PipelineSchedule split = schedule;
  for (RankOrder& order : split.ranks) {
    RankOrder ops;
    for (const PipelineOp& op : order) {
      const bool is_fused = op.kind == PipelineOpKind::kForwardBackward;
      if (is_fused) ops.push_back(forward_op(op.microbatch, op.chunk));
      if (is_fused || op.kind == PipelineOpKind::kBackward) {
        ops.push_back(is_fused ? input_op(op.backward_microbatch, op.backward_chunk)
                               : input_op(op.microbatch, op.chunk));
        ops.push_back(weight_of(ops.back()));
      } else {
        ops.push_back(op);
      }
    }
    order = std::move(ops);
  }
  return split;
}

std::vector<Problem> check(const OptimalRequest& request) {
  // The same limits of size and time as those of a schedule with any number of chunks.
  ScheduleRequest as_published{.name = ScheduleName::kBreadthFirst,
                               .stages = request.stages,
                               .microbatches = request.microbatches,
                               .chunks = request.chunks,
                               .costs = request.costs};
  std::vector<Problem> problems = check(as_published);
  if (request.placement == Placement::kBidirectional) {
    problems.push_back({"placement", "must be a loop or a V: every stage is held once"});
  }
  if (request.memory_limit && *request.memory_limit < request.chunks) {
    problems.push_back(
        {"memory_limit",
         fmt::format("must be at least {} (a micro-batch on each chunk of a rank), is {}",
                     request.chunks, *request.memory_limit)});
  }
  return problems;
}

OptimalSchedule optimal_schedule(const OptimalRequest& request) {
  return Optimizer(request).run();
}

}  // namespace stepsim
