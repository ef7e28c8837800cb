#include "analysis/search/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <queue>
#include <tuple>
#include <utility>

#include "analysis/search/plan_bench.h"
#include "analysis/search/plan_helper.h"
#include "sim/base/parallel.h"

namespace stepsim {
namespace {

constexpr std::size_t kBlock = 1024;        // plans between two looks at the clock
constexpr std::size_t kRoundOfBounds = 64;  // plans whose bounds are made closer at a time
constexpr std::size_t kRoundOfRuns = 8;     // plans that are simulated at a time
constexpr std::size_t kNearest = 3;
constexpr int kNear = 2;                           // times the step of the fastest plan
constexpr std::uint64_t kOpsOfFront = 30'000'000;  // some 10 s on one core
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kHour = 3600;  // seconds
// Where limits of steps are worked out of an objective, they are longer by this share.
constexpr double kMargin = 1e-6;

// A plan that breaks no rule.
struct Candidate {
  std::size_t place = 0;
  std::uint64_t number = 0;
  std::int64_t chips = 0;
  Bytes memory{};  // bounds
  Duration step{};
  bool is_close = false;
  bool is_done = false;  // simulated, or can't run
};

// Node of a queue: least bound first, then in the order of candidates.
struct Node {
  double bound = 0;
  std::size_t candidate = 0;
  friend bool operator<(const Node& a, const Node& b) {  // std::priority_queue takes the largest
    return std::tie(a.bound, a.candidate) > std::tie(b.bound, b.candidate);
  }
};

// The same, with the largest lead first, and plans of useful speed before all others.
struct Lead {
  bool is_near = false;  // to the fastest plan
  double lead = 0;
  std::size_t candidate = 0;
  friend bool operator<(const Lead& a, const Lead& b) {
    return std::tuple(a.is_near, a.lead, b.candidate) < std::tuple(b.is_near, b.lead, a.candidate);
  }
};

// Grows with the chips and then with the step, by less than one chip.
double chips_then_step(std::int64_t chips, Duration step) {
  const double seconds = to_seconds(step);
  return static_cast<double>(chips) + seconds / (seconds + kHour);
}

double value_of(const FoundPlan& plan, Objective objective) {
  switch (objective) {
    case Objective::kStep:
      return to_seconds(plan.step);
    case Objective::kMemory:
      return static_cast<double>(plan.peak.value());
    case Objective::kChips:
      return chips_then_step(plan.chips, plan.step);
    case Objective::kCost:
      break;
  }
  return plan.cost;
}

// Returns whether `plan` beats every plan with these bounds: nowhere worse, somewhere better.
bool beats(const FoundPlan& plan, Duration step, Bytes memory, std::int64_t chips) {
  return plan.step <= step && plan.peak <= memory && plan.chips <= chips &&
         (plan.step < step || plan.peak < memory || plan.chips < chips);
}

class Search {
 public:
  Search(const std::vector<SearchPlace>& places, const SearchOptions& options)
      : options_(options), free_helpers_(options.helpers) {
    if (options.time_limit_s) {
      deadline_ = SearchClock::now() + std::chrono::duration_cast<SearchClock::duration>(
                                           std::chrono::duration<double>(*options.time_limit_s));
    }
    for (const SearchPlace& place : places) benches_.push_back(std::make_unique<PlanBench>(place));
    for (const SearchPlace& place : places) all_ += place.space.size();
  }

  SearchResult run() {
    for (std::size_t place = 0; place < benches_.size(); ++place) bound_all(place);
    find_best();
    if (fitting_.empty() && !is_speed_missing()) find_nearest();
    if (fitting_.empty() && is_speed_missing()) find_least_step();
    if (options_.front != FrontEffort::kNone) find_front();
    judge_front();
    count_left();
    std::ranges::sort(fitting_, {}, [&](const FoundPlan& plan) { return order_of(plan); });
    if (!fitting_.empty()) result_.nearest.clear();
    result_.front = front();
    if (fitting_.size() > options_.top) fitting_.resize(options_.top);
    result_.best = std::move(fitting_);
    report(true);
    return std::move(result_);
  }

 private:
  using Order = std::tuple<double, Duration, std::size_t, std::uint64_t>;
  Order order_of(const FoundPlan& plan) const {
    return {value_of(plan, options_.objective), plan.step, plan.place, plan.number};
  }

  bool is_late() const {
    if (options_.most_simulated && begun_ >= *options_.most_simulated) return true;
    return deadline_ && SearchClock::now() >= *deadline_;
  }

  ParallelPlan plan_of(const Candidate& candidate) const {
    return benches_[candidate.place]->plan(candidate.number);
  }

  // ---- 1 and 2: rules and bounds ----

  // A combination of values that is looked at, and what became of it.
  struct Look {
    std::uint64_t number = 0;
    ParallelPlan plan{};
    NoPlan why{};
    std::optional<Candidate> candidate{};
  };

  void exclude(const NoPlan& why) {
    result_.considered += why.numbers;
    result_.excluded[why.reason] += why.numbers;
    result_.examples.try_emplace(why.reason, why.message);
  }

  // Returns the next combinations from `next` on that are plans, and counts the others.
  std::vector<Look> next_plans(const SearchPlace& at, std::uint64_t& next) {
    std::vector<Look> looks;
    while (next < at.space.size() && looks.size() < kBlock) {
      PlanOrReason made = at.space.draft(next, at.base.plan, at.base.model,
                                         static_cast<std::int64_t>(at.places.chips.size()));
      if (made.plan) {
        looks.push_back({.number = next++, .plan = std::move(*made.plan)});
      } else {
        exclude(made.why);
        next += made.why.numbers;
      }
    }
    return looks;
  }

  void look_at(std::size_t place, Look& look) {
    PlanBench& bench = *benches_[place];
    look.plan = balanced(std::move(look.plan), bench.place().base.model);
    if (const auto problem = bench.problem_of(look.plan)) {
      const std::string key = problem->field.substr(problem->field.find('.') + 1);
      look.why = {.reason = "rule of " + key, .message = key + " " + problem->message};
      return;
    }
    const PlanBounds::Quick bounds = bench.memory_and_quick(look.plan);
    look.candidate = {.place = place,
                      .number = look.number,
                      .chips = look.plan.ranks(),
                      .memory = bounds.memory,
                      .step = bounds.step};
  }

  void bound_all(std::size_t place) {
    const SearchPlace& at = benches_[place]->place();
    for (std::uint64_t next = 0; next < at.space.size();) {
      if (is_late()) {
        result_.considered += at.space.size() - next;
        result_.excluded["not reached"] += at.space.size() - next;
        has_unbounded_ = true;
        return;
      }
      std::vector<Look> looks = next_plans(at, next);
      for_each_in_parallel(looks.size(), options_.threads,
                           [&](std::size_t i) { look_at(place, looks[i]); });
      for (const Look& look : looks) {
        if (look.candidate) {
          ++result_.considered;
          result_.has_plans = true;
          keep(*look.candidate);
        } else {
          exclude(look.why);
        }
      }
      report(false);
    }
  }

  void keep(const Candidate& candidate) {
    if (candidate.memory <= benches_[candidate.place]->capacity()) {
      candidates_.push_back(candidate);
      return;
    }
    ++result_.excluded["memory"];
    too_large_.push_back(candidate);
    const auto by_memory = [](const Candidate& a, const Candidate& b) {
      return std::tie(a.memory, a.place, a.number) < std::tie(b.memory, b.place, b.number);
    };
    std::ranges::sort(too_large_, by_memory);
    if (too_large_.size() > kNearest) too_large_.resize(kNearest);
  }

  // ---- 3: the best ----

  double bound_of(const Candidate& candidate) const {
    switch (options_.objective) {
      case Objective::kStep:
        return to_seconds(candidate.step);
      case Objective::kMemory:
        return static_cast<double>(candidate.memory.value());
      case Objective::kChips:
        return chips_then_step(candidate.chips, candidate.step);
      case Objective::kCost:
        break;
    }
    return benches_[candidate.place]->cost(candidate.step, candidate.chips);
  }

  // The objective of the last of the best plans; infinite while there are too few.
  double threshold() const {
    if (best_values_.size() < options_.top) return kInfinite;
    return best_values_[options_.top - 1];
  }

  void find_best() {
    std::priority_queue<Node> queue;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      queue.push({bound_of(candidates_[i]), i});
    }
    while (!queue.empty() && queue.top().bound <= threshold()) {
      next_bound_ = queue.top().bound;
      if (is_late()) break;
      if (!candidates_[queue.top().candidate].is_close) {
        bring_closer(
            queue, [&](const Node& node) { return node.bound <= threshold(); },
            [&](const Candidate& candidate) { return bound_of(candidate); });
        continue;
      }
      std::vector<std::size_t> round;
      while (round.size() < kRoundOfRuns && !queue.empty() && queue.top().bound <= threshold() &&
             candidates_[queue.top().candidate].is_close) {
        if (!is_too_slow(candidates_[queue.top().candidate])) {
          round.push_back(queue.top().candidate);
        }
        queue.pop();
      }
      simulate(round);
    }
    double bound = queue.empty() ? kInfinite : queue.top().bound;
    bound = has_unbounded_ ? 0 : std::min(bound, unfinished_bound_);
    if (bound > threshold() || bound == kInfinite) return;
    next_bound_ = bound;
    const double best = best_values_.empty() ? kInfinite : best_values_.front();
    result_.bound_gap = best == kInfinite ? 1 : best == 0 ? 0 : std::max(0.0, 1 - bound / best);
  }

  void make_close(const std::vector<std::size_t>& round) {
    for_each_in_parallel(round.size(), options_.threads, [&](std::size_t i) {
      Candidate& candidate = candidates_[round[i]];
      candidate.step =
          std::max(candidate.step, benches_[candidate.place]->close(plan_of(candidate)));
      candidate.is_close = true;
    });
  }

  // Takes plans with quick bounds from the queue and puts them back with close ones.
  template <typename May, typename BoundOf>
  void bring_closer(std::priority_queue<Node>& queue, const May& may, const BoundOf& bound) {
    std::vector<std::size_t> round;
    while (round.size() < kRoundOfBounds && !queue.empty() && may(queue.top()) &&
           !candidates_[queue.top().candidate].is_close) {
      round.push_back(queue.top().candidate);
      queue.pop();
    }
    make_close(round);
    for (const std::size_t i : round) queue.push({bound(candidates_[i]), i});
    report(false);
  }

  // Simulates a plan by a helper that is free, else here.
  SimulatedPlan simulated_somewhere(const Candidate& candidate, std::optional<Duration> most_step) {
    const ParallelPlan plan = plan_of(candidate);
    const std::shared_ptr<PlanHelper> helper = take_helper();
    if (!helper) return benches_[candidate.place]->simulated(plan, options_, deadline_, most_step);
    PlanQuestion question{.place = candidate.place,
                          .number = candidate.number,
                          .seconds = {},
                          .most_step = most_step};
    if (deadline_) {
      question.seconds = std::chrono::duration<double>(*deadline_ - SearchClock::now()).count();
    }
    SimulatedPlan done = helper->simulated(question);
    if (done.plan) done.plan->plan = plan;
    const std::scoped_lock lock(helpers_mutex_);
    free_helpers_.push_back(helper);
    return done;
  }

  std::shared_ptr<PlanHelper> take_helper() {
    const std::scoped_lock lock(helpers_mutex_);
    if (free_helpers_.empty()) return nullptr;
    std::shared_ptr<PlanHelper> helper = std::move(free_helpers_.back());
    free_helpers_.pop_back();
    return helper;
  }

  // The longest step with which the plan could be one of the best; at least that.
  Duration most_of_best(const Candidate& candidate) const {
    const double least = threshold();
    if (least == kInfinite) return Duration::max();
    double seconds = least;
    switch (options_.objective) {
      case Objective::kStep:
        break;
      case Objective::kMemory:
        return bound_of(candidate) > least ? Duration() : Duration::max();
      case Objective::kChips: {
        const double share = least - static_cast<double>(candidate.chips);
        if (share < 0) return {};
        if (share >= 1 - kMargin) return Duration::max();
        seconds = kHour * share / (1 - share) + kMargin;
        break;
      }
      case Objective::kCost: {
        const double of_second =
            benches_[candidate.place]->cost(std::chrono::seconds(1), candidate.chips);
        if (of_second <= 0) return Duration::max();
        seconds = least / of_second;
        break;
      }
    }
    constexpr double kMost = 1e6;
    if (seconds > kMost) return Duration::max();
    return Duration(std::llround(seconds * (1 + kMargin) * kPicosecondsPerSecond));
  }
  // The longest step with which the plan could be on the front; at least that. The front only comes
  // nearer.
  Duration most_of_front(const Candidate& candidate) const {
    Duration most = Duration::max();
    for (const FoundPlan& plan : front_) {
      if (plan.chips > candidate.chips || plan.peak > candidate.memory) continue;
      most = std::min(most, plan.step);
    }
    return most;
  }
  // Unset: the plan may have any step.
  std::optional<Duration> most_step(const Candidate& candidate) const {
    const Duration most = std::max(most_of_best(candidate), most_of_front(candidate));
    if (!options_.gives_up || most == Duration::max()) return std::nullopt;
    return most;
  }

  void simulate(const std::vector<std::size_t>& round) {
    std::vector<SimulatedPlan> done(round.size());
    const std::size_t workers = options_.helpers.size() + options_.threads;
    for_each_in_parallel(round.size(), workers, [&](std::size_t i) {
      const Candidate& candidate = candidates_[round[i]];
      done[i] = simulated_somewhere(candidate, most_step(candidate));
    });
    begun_ += round.size();
    for (std::size_t i = 0; i < round.size(); ++i) {
      Candidate& candidate = candidates_[round[i]];
      candidate.is_done = done[i].plan || done[i].cannot_run || done[i].is_slower;
      if (done[i].cannot_run) ++result_.excluded["can't run"];
      if (done[i].is_slower) {
        ++result_.excluded["worse while simulated"];
        result_.ops += done[i].ops;
      }
      if (!candidate.is_done) unfinished_bound_ = std::min(unfinished_bound_, bound_of(candidate));
      if (!done[i].plan) continue;
      result_.ops += done[i].ops;
      done[i].plan->place = candidate.place;
      done[i].plan->number = candidate.number;
      take(std::move(*done[i].plan));
    }
    report(false);
  }

  void take(FoundPlan plan) {
    ++result_.simulated;
    if (!plan.fits) {
      result_.nearest.push_back(std::move(plan));
      return;
    }
    if (options_.most_step && plan.step > *options_.most_step) {
      slower_.push_back(std::move(plan));
      return;
    }
    const double value = value_of(plan, options_.objective);
    best_values_.insert(std::ranges::upper_bound(best_values_, value), value);
    const bool is_beaten = std::ranges::any_of(front_, [&](const FoundPlan& other) {
      return beats(other, plan.step, plan.peak, plan.chips);
    });
    if (!is_beaten) {
      std::erase_if(front_, [&](const FoundPlan& other) {
        return beats(plan, other.step, other.peak, other.chips);
      });
      front_.push_back(plan);
    }
    fitting_.push_back(std::move(plan));
  }

  // ---- nothing fits ----

  bool is_too_slow(const Candidate& candidate) const {
    return options_.most_step && candidate.step > *options_.most_step;
  }
  // Plans may fit, but none is as fast as asked.
  bool is_speed_missing() const {
    return !slower_.empty() || std::ranges::any_of(candidates_, [&](const Candidate& candidate) {
      return is_too_slow(candidate);
    });
  }
  void find_least_step() {
    Duration least = Duration::max();
    for (const Candidate& candidate : candidates_) {
      if (!candidate.is_done) least = std::min(least, candidate.step);
    }
    for (const FoundPlan& plan : slower_) least = std::min(least, plan.step);
    if (!has_unbounded_) result_.least_step = least;
    std::ranges::sort(slower_, {}, [](const FoundPlan& plan) {
      return std::tuple(plan.step, plan.place, plan.number);
    });
    result_.nearest = std::move(slower_);
    if (result_.nearest.size() > kNearest) result_.nearest.resize(kNearest);
  }

  void find_nearest() {
    for (const Candidate& candidate : too_large_) {
      if (is_late()) break;
      auto found =
          benches_[candidate.place]->simulated(plan_of(candidate), options_, deadline_).plan;
      if (!found) continue;
      ++begun_;
      found->place = candidate.place;
      found->number = candidate.number;
      --result_.excluded["memory"];
      take(std::move(*found));
    }
    std::erase_if(result_.excluded, [](const auto& entry) { return entry.second == 0; });
    std::ranges::sort(result_.nearest, {}, [](const FoundPlan& plan) {
      return std::tuple(plan.peak, plan.step, plan.place, plan.number);
    });
    if (result_.nearest.size() > kNearest) result_.nearest.resize(kNearest);
  }

  // ---- 4: the front ----

  bool is_beaten(const Candidate& candidate) const {
    return std::ranges::any_of(front_, [&](const FoundPlan& plan) {
      return beats(plan, candidate.step, candidate.memory, candidate.chips);
    });
  }

  // How far a plan with these bounds may be in front: each plan of the front with at most its chips
  // has at least so much more time or memory, as a share. Never grows when the front does.
  double lead(const Candidate& candidate) const {
    double least = kInfinite;
    for (const FoundPlan& plan : front_) {
      if (plan.chips > candidate.chips) continue;
      least = std::min(least, std::max(ratio(plan.step.count(), candidate.step.count()),
                                       ratio(plan.peak.value(), candidate.memory.value())));
    }
    return least - 1;
  }
  Lead lead_of(std::size_t candidate) const {
    Duration fastest = Duration::max();
    for (const FoundPlan& plan : front_) fastest = std::min(fastest, plan.step);
    const Candidate& at = candidates_[candidate];
    return {at.step / kNear <= fastest, lead(at), candidate};
  }
  static double ratio(std::int64_t of, std::int64_t to) {
    return static_cast<double>(of) / static_cast<double>(std::max<std::int64_t>(1, to));
  }

  bool may_go_on_with_front() const {
    return !is_late() && (options_.front == FrontEffort::kWhole || ops_of_front_ < kOpsOfFront);
  }

  // Gives a plan and the next ones of the queue close bounds.
  void bring_leads_closer(std::size_t first, std::priority_queue<Lead>& queue) {
    std::vector<std::size_t> round = {first};
    while (round.size() < kRoundOfBounds && !queue.empty() &&
           !candidates_[queue.top().candidate].is_close) {
      const std::size_t next = queue.top().candidate;
      queue.pop();
      if (!is_beaten(candidates_[next])) round.push_back(next);
    }
    make_close(round);
    for (const std::size_t i : round) queue.push(lead_of(i));
  }

  // Simulates what may be furthest in front first. Leads in the queue are those of an earlier
  // front.
  void find_front() {
    std::priority_queue<Lead> queue;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!candidates_[i].is_done && !is_too_slow(candidates_[i])) queue.push(lead_of(i));
    }
    const std::uint64_t ops_before = result_.ops;
    std::vector<std::size_t> round;
    while (!queue.empty() || !round.empty()) {
      ops_of_front_ = result_.ops - ops_before;
      if (!may_go_on_with_front()) break;
      if (round.size() == kRoundOfRuns || queue.empty()) {
        std::erase_if(round, [&](std::size_t i) { return is_beaten(candidates_[i]); });
        simulate(std::exchange(round, {}));
        continue;
      }
      const std::size_t next = queue.top().candidate;
      queue.pop();
      Candidate& candidate = candidates_[next];
      if (is_beaten(candidate) || is_too_slow(candidate)) continue;
      if (const Lead now = lead_of(next); !queue.empty() && now < queue.top()) {
        queue.push(now);
      } else if (!candidate.is_close) {
        bring_leads_closer(next, queue);
      } else {
        round.push_back(next);
      }
    }
  }

  // Says how far the front may be off for plans that were not simulated to their end.
  void judge_front() {
    for (const Candidate& candidate : candidates_) {
      if (candidate.is_done || is_beaten(candidate) || is_too_slow(candidate)) continue;
      result_.front_is_whole = false;
      result_.front_gap = std::max(result_.front_gap, std::min(1.0, lead(candidate)));
      auto& until = result_.front_whole_until;
      until = until ? std::min(*until, candidate.step) : candidate.step;
    }
    if (!has_unbounded_) return;
    result_.front_is_whole = false;
    result_.front_gap = 1;
    result_.front_whole_until.reset();
  }

  std::vector<FoundPlan> front() {
    std::ranges::sort(front_, {}, [](const FoundPlan& plan) {
      return std::tuple(plan.step, plan.peak, plan.chips, plan.place, plan.number);
    });
    return std::move(front_);
  }

  // Plans that are left were not simulated: the bounds are worse than results, or time was up.
  void count_left() {
    for (const Candidate& candidate : candidates_) {
      if (candidate.is_done) continue;
      if (is_too_slow(candidate)) {
        ++result_.excluded["slower than asked"];
        continue;
      }
      const bool is_worse = fitting_.size() >= options_.top && bound_of(candidate) > threshold() &&
                            (result_.front_is_whole || is_beaten(candidate));
      ++result_.excluded[is_worse ? "worse by its bound" : "not reached"];
    }
  }

  void report(bool is_end) {
    if (!options_.progress) return;
    SearchProgress progress{.considered = result_.considered, .all = all_, .simulated = begun_};
    if (!best_values_.empty()) progress.best = best_values_.front();
    if (!is_end) progress.bound = next_bound_;
    options_.progress(progress);
  }

  const SearchOptions& options_;
  std::mutex helpers_mutex_;  // guards free_helpers_
  std::vector<std::shared_ptr<PlanHelper>> free_helpers_;
  std::optional<SearchClock::time_point> deadline_{};
  std::vector<std::unique_ptr<PlanBench>> benches_;
  std::uint64_t all_ = 0;
  std::uint64_t begun_ = 0;  // simulations
  std::vector<Candidate> candidates_;
  std::vector<Candidate> too_large_;  // a few, least memory first
  bool has_unbounded_ = false;
  std::uint64_t ops_of_front_ = 0;       // of the simulations for the front
  double unfinished_bound_ = kInfinite;  // least, of plans whose simulation was not finished
  std::vector<FoundPlan> fitting_;
  std::vector<FoundPlan> slower_;    // that fit, but take longer than asked
  std::vector<double> best_values_;  // of fitting_, ascending
  std::vector<FoundPlan> front_;     // no plan of fitting_ beats them
  std::optional<double> next_bound_{};
  SearchResult result_{};
};

}  // namespace

std::string_view name_of(Objective objective) {
  constexpr std::array<std::string_view, kObjectives> kNames = {"step", "memory", "cost", "chips"};
  return kNames[static_cast<std::size_t>(objective)];
}

double objective_value(const FoundPlan& plan, Objective objective) {
  return value_of(plan, objective);
}

SearchResult search_plans(const std::vector<SearchPlace>& places, const SearchOptions& options) {
  return Search(places, options).run();
}

PlanVerdict judge_plan(const SearchPlace& place, const ParallelPlan& plan,
                       const SearchOptions& options) {
  PlanBench bench(place);
  PlanVerdict verdict{.problems = bench.problems_of(plan)};
  if (!verdict.problems.empty()) return verdict;
  verdict.memory_bound = bench.memory(plan);
  verdict.step_bound = std::max(bench.quick(plan), bench.close(plan));
  verdict.found = bench.simulated(plan, options).plan;
  return verdict;
}

}  // namespace stepsim
