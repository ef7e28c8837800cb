#include "schedules/pipeline/search/optimal_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/search/greedy_schedule.h"
#include "schedules/pipeline/search/order_polish.h"
#include "schedules/pipeline/search/order_search.h"
#include "schedules/pipeline/search/order_seeds.h"
#include "schedules/pipeline/search/span_bound.h"

namespace stepsim {
namespace {

// Each part of the search may spend 1 / share of the effort. The parts in order: exact search as
// long as it is small, moves of single ops, more of the exact search, planners with other times,
// list scheduling, moves again. A beam search gets the rest.
constexpr std::int64_t kFirstShare = 16;
constexpr std::int64_t kPolishShare = 4;
constexpr std::int64_t kExactShare = 8;
constexpr std::int64_t kReplanShare = 8;
constexpr std::int64_t kClimbShare = 8;
constexpr std::int64_t kWorseShare = 40;  // share of F + B + W that moves may lose at first
// Effort is counted in words of search states. An op of list scheduling and its replay costs
// kWordsAnOp words. An op of a planner (all variants) costs kWordsAPlannedOp words.
// kPolishedOpsAWord ops of a move cost one word.
constexpr std::int64_t kWordsAnOp = 16;
constexpr std::int64_t kWordsAPlannedOp = 80;
constexpr std::int64_t kPolishedOpsAWord = 6;
constexpr std::int64_t kMakespanShare = 8;  // an extra eighth for the makespan
constexpr std::int64_t kNoWidth = std::int64_t{1} << 40;
constexpr std::int64_t kAnyMakespan = std::int64_t{1} << 62;
constexpr std::int64_t kNarrowestBeam = 8;

// Candidate is a schedule and the figures that rank it.
struct Candidate {
  PipelineSchedule schedule;
  std::string origin;
  std::int64_t span = 0;  // longest span of a rank
  std::int64_t makespan = 0;

  std::tuple<std::int64_t, std::int64_t> rank() const { return {span, makespan}; }
};

class OrderOptimizer {
 public:
  explicit OrderOptimizer(const OptimalRequest& request)
      : request_(request),
        memory_limit_(std::min(request.memory_limit.value_or(forwards()), forwards())),
        effort_left_(request.effort) {
    const StageCosts given =
        request.stage_costs.empty() ? StageCosts(request.costs) : StageCosts(request.stage_costs);
    unit_ = unit_of(given);
    costs_ = in_units(given, unit_);
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
    std::int64_t bound = kAnyMakespan;
    for (const Placement placement : placements_) {
      bound = std::min(bound, span_bound(shape(placement), costs_, memory_limit_));
    }
    bool is_proven = best_->span <= bound;
    if (!is_proven) is_proven = search_spans(bound);
    shorten_makespan();
    const std::int64_t work = replay(best_->schedule, costs_).ideal;
    return {.schedule = std::move(best_->schedule),
            .objective = (best_->span - work) * unit_,
            .lower_bound = ((is_proven ? best_->span : bound) - work) * unit_,
            .is_proven = is_proven,
            .origin = std::move(best_->origin),
            .states = states_};
  }

 private:
  std::int64_t forwards() const { return request_.microbatches * request_.chunks; }  // per rank
  ScheduleShape shape(Placement placement) const {
    return {.stages = static_cast<std::int32_t>(request_.stages),
            .microbatches = static_cast<std::int32_t>(request_.microbatches),
            .chunks = static_cast<std::int32_t>(request_.chunks),
            .placement = placement};
  }

  using Rank = std::tuple<std::int64_t, std::int64_t>;  // smaller is better

  // Keeps the schedule if it is the best so far. Returns its rank, or nothing if it needs too much
  // memory.
  std::optional<Rank> offer(PipelineSchedule schedule, std::string origin) {
    const PipelineReplay replayed = replay(schedule, costs_);
    if (*std::ranges::max_element(replayed.peak_in_flight) > memory_limit_) return std::nullopt;
    const Rank rank(replayed.longest_span, replayed.makespan);
    Candidate candidate{std::move(schedule), std::move(origin), replayed.longest_span,
                        replayed.makespan};
    if (!best_ || rank < best_->rank()) best_ = std::move(candidate);
    return rank;
  }

  void seed() {
    for (const Placement placement : placements_) {
      offer(one_at_a_time(shape(placement)), "sequential");
    }
    for (const PublishedOrder& published : published_orders(request_, costs_, memory_limit_)) {
      const Placement placement = published.schedule.placement;
      if (std::ranges::find(placements_, placement) == placements_.end()) continue;
      const std::optional<Rank> rank = offer(published.schedule, published.origin);
      if (rank && (!best_published_ || *rank < best_published_->first)) {
        best_published_ = {*rank, published.schedule};
      }
    }
  }

  // Guided is a policy of list scheduling and its result.
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

  // The authors' planners (ZB auto, ZB-V) are greedy. With slightly different times or less memory
  // they plan differently, sometimes better.
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
      const std::int64_t least = published(name).planning->least_limit(request_.stages);
      if (least > memory_limit_) continue;
      for (std::int64_t i = 0; i < kMost && effort_left_ > enough; ++i) {
        const auto other = [&](std::int64_t time) { return time * (60 + below(81)); };
        std::vector<PipelineCosts> told;
        for (const PipelineCosts& stage : costs_.listed()) {
          told.push_back(
              {other(stage.forward), other(stage.backward_input), other(stage.backward_weight)});
        }
        const std::int64_t send = below(4 * kScale * costs_.at(0).send + 1);
        for (PipelineCosts& stage : told) stage.send = send;
        request.costs = longest_stage(told);
        if (!costs_.are_even()) request.stage_costs = std::move(told);
        request.memory_limit = memory_limit_;
        if (below(2) == 0) request.memory_limit = least + below(memory_limit_ - least + 1);
        if (!check(request).empty()) break;
        PipelineSchedule schedule = make_schedule(request);
        if (std::ranges::find(placements_, schedule.placement) == placements_.end()) break;
        effort_left_ -= kWordsAPlannedOp * ops();
        ++states_;
        offer(std::move(schedule), "planning with other times");
        if (best_->span <= bound || !goes_on()) return;
      }
    }
  }

  // Polishes the best order and the best published one: an order that is not the best may become
  // it.
  void polish_orders(std::int64_t bound) {
    std::vector<PipelineSchedule> orders{best_->schedule};
    if (best_published_ && best_published_->second.ranks != best_->schedule.ranks) {
      orders.push_back(best_published_->second);
    }
    const std::int64_t words =
        request_.effort / kPolishShare / static_cast<std::int64_t>(orders.size());
    const std::int64_t steps = words * kPolishedOpsAWord / ops();
    const std::int64_t worse = longest_stage(costs_).all() / kWorseShare;
    for (PipelineSchedule& order : orders) {
      effort_left_ -= words;
      states_ += steps;
      const PolishLimits limits{.memory_limit = memory_limit_,
                                .steps = steps,
                                .enough = bound,
                                .worse = worse,
                                .seed = ++seed_};
      offer(polish(std::move(order), costs_, limits), "search");
      if (best_->span <= bound || !goes_on()) return;
    }
  }

  // Makes small changes to the best policies and keeps those that do no harm.
  void climb(std::int64_t bound) {
    std::mt19937 random(1);
    const auto below = [&random](std::size_t count) { return random() % count; };
    const std::int64_t enough = effort_left_ - request_.effort / kClimbShare;
    for (std::size_t turn = 0; effort_left_ > enough && !guided_.empty(); ++turn) {
      if (best_->span <= bound || !goes_on()) return;
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
        const std::int64_t weight = longest_stage(costs_).backward_weight;
        policy.patience = static_cast<std::int64_t>(below(static_cast<std::size_t>(weight) + 1));
      }
      const std::optional<Rank> rank = play(guided.placement, policy);
      if (rank && *rank <= guided.rank) guided = {guided.placement, std::move(policy), *rank};
    }
  }

  // Returns the deadlines of each rank such that the longest span and the makespan do not exceed
  // these.
  std::vector<std::int64_t> deadlines(std::int64_t span, std::int64_t makespan) const {
    std::vector<std::int64_t> ends;
    std::int64_t start = 0;
    for (std::int32_t rank = 0; rank < request_.stages; ++rank) {
      ends.push_back(std::min(start + span, makespan));
      start += costs_.at(rank).forward + costs_.at(rank).send;
    }
    return ends;
  }

  // Returns whether W takes equally long on all chunks of each rank, which the exact search needs
  // (order_search.h).
  bool is_searchable(Placement placement) const {
    const PipelineSchedule stages =
        schedule_by_rank(shape(placement), [](std::int32_t) { return RankOrder(); });
    for (std::int32_t stage = 0; stage < stage_count(stages); ++stage) {
      const std::int32_t first = rank_of(stages, 0, stage);
      if (costs_.at(stage).backward_weight != costs_.at(first).backward_weight) return false;
    }
    return true;
  }

  OrderSearchResult search(Placement placement, std::vector<std::int64_t> ends,
                           const OrderSearchLimits& limits) {
    if (!is_searchable(placement)) return {.was_stopped = true};
    OrderSearchRequest search{.shape = shape(placement),
                              .costs = costs_,
                              .memory_limit = memory_limit_,
                              .deadlines = std::move(ends),
                              .limits = limits};
    search.progress = [](void* context) {
      return static_cast<OrderOptimizer*>(context)->goes_on();
    };
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

  // Looks for shorter spans with this many words of states. Returns true if there are none.
  bool search_all(std::int64_t bound, std::int64_t words) {
    bool is_proven = true;
    const auto each = static_cast<std::int64_t>(placements_.size());
    for (const Placement placement : placements_) {
      const OrderSearchResult result =
          search(placement, deadlines(best_->span - 1, kAnyMakespan), {kNoWidth, words / each});
      if (best_->span <= bound) return true;
      is_proven = is_proven && result.is_complete;
    }
    return is_proven;
  }

  // Returns true if no order has a shorter span than the best one now.
  bool search_spans(std::int64_t bound) {
    if (search_all(bound, request_.effort / kFirstShare)) return true;
    polish_orders(bound);
    if (best_->span <= bound || search_all(bound, request_.effort / kExactShare)) return true;
    for (const auto improve :
         {&OrderOptimizer::replan, &OrderOptimizer::climb, &OrderOptimizer::polish_orders}) {
      (this->*improve)(bound);
      if (best_->span <= bound) return true;
    }
    if (std::ranges::none_of(placements_,
                             [&](Placement placement) { return is_searchable(placement); })) {
      return false;
    }
    // The beam widens step by step and starts again from the first width after each improvement.
    for (std::int64_t width = kNarrowestBeam; effort_left_ > 0; width *= 2) {
      bool all_seen = true;
      for (const Placement placement : placements_) {
        const OrderSearchResult result =
            search(placement, deadlines(best_->span - 1, kAnyMakespan), {width, effort_left_});
        if (best_->span <= bound) return true;
        all_seen = all_seen && result.is_complete;
      }
      if (all_seen) return true;
    }
    return false;
  }

  // Looks, while that is quick, for an order with the same span bubble that ends sooner.
  void shorten_makespan() {
    const std::int64_t each =
        request_.effort / kMakespanShare / static_cast<std::int64_t>(placements_.size());
    for (const Placement placement : placements_) {
      for (std::int64_t width = kNarrowestBeam, left = each; left > 0; width *= 8) {
        const OrderSearchResult result =
            search(placement, deadlines(best_->span, best_->makespan - 1), {width, left});
        left -= result.words;
        if (result.is_complete || result.was_stopped) break;
      }
    }
  }

  const OptimalRequest& request_;
  StageCosts costs_ = PipelineCosts{};  // in the common unit
  std::int64_t unit_ = 1;
  std::int64_t memory_limit_;
  std::vector<Placement> placements_;
  std::optional<Candidate> best_;
  std::optional<std::pair<Rank, PipelineSchedule>> best_published_;
  std::uint32_t seed_ = 0;      // seed of the moves
  std::vector<Guided> guided_;  // the best policies, best first
  std::int64_t effort_left_;
  std::int64_t states_ = 0;
};

}  // namespace

std::vector<Problem> check(const OptimalRequest& request) {
  // Applies the same limits on size and time as for a published schedule with any number of chunks.
  ScheduleRequest as_published{.name = ScheduleName::kBreadthFirst,
                               .stages = request.stages,
                               .microbatches = request.microbatches,
                               .chunks = request.chunks,
                               .costs = request.costs,
                               .stage_costs = request.stage_costs};
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
  assert(check(request).empty());
  return OrderOptimizer(request).run();
}

}  // namespace stepsim
