#include "search/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "search/descent.h"
#include "search/plan_bench.h"
#include "search/plan_helper.h"
#include "sim/base/parallel.h"

namespace stepsim {
namespace {

constexpr std::size_t kBlock = 1024;        // plans whose quick bounds are made at a time
constexpr std::size_t kBlockInTime = 64;    // the same where there is a limit of time
constexpr std::size_t kRoundOfBounds = 64;  // plans whose bounds are made closer at a time
constexpr std::size_t kRoundOfRuns = 8;     // plans that are simulated at a time
constexpr std::size_t kNearest = 3;
constexpr int kNear = 2;                           // times the step of the fastest plan
constexpr std::uint64_t kOpsOfFront = 30'000'000;  // some 10 s on one core
// With a limit of time: shares of it until which first plans are looked for, and bounds are made.
constexpr double kUntilSoon = 0.1;  // the first one
constexpr double kUntilFirst = 0.35;
constexpr double kUntilBounds = 0.7;
constexpr int kIdleRounds = 3;     // of descents that find nothing better
constexpr double kMostMargin = 2;  // of memory over its bound
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
  Bytes usable{};  // the largest peak that leaves the headroom
  Duration step{};
  std::int64_t passes = 0;  // of layers in a step of a replica; 0: not known
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
    if (options.time_limit_s) deadline_ = after(*options.time_limit_s);
    for (const SearchPlace& place : places) benches_.push_back(std::make_unique<PlanBench>(place));
    for (const SearchPlace& place : places) all_ += place.space.size();
    unfinished_bounds_.assign(places.size(), kInfinite);
  }

  SearchResult run() {
    if (options_.time_limit_s) {
      const SearchClock::time_point end_of_first = after(kUntilFirst * *options_.time_limit_s);
      bounds_until_ = after(kUntilBounds * *options_.time_limit_s);
      find_first(end_of_first);
    }
    for (std::size_t place = 0; place < benches_.size(); ++place) bound_all(place);
    is_bounded_ = true;
    // Where there are more plans than time, descents find better ones than an order of numbers.
    if (deadline_ && has_unbounded_) find_first(*bounds_until_);
    find_best();
    if (fitting_.empty() && options_.takes_likely && !is_speed_missing()) take_likely();
    if (fitting_.empty() && !is_speed_missing()) find_nearest();
    if (fitting_.empty() && is_speed_missing()) find_least_step();
    if (benches_.size() > 1) find_best_of_places();
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

  static SearchClock::time_point after(double seconds) {
    // As much as a clock can count, and more than anybody waits.
    constexpr double kMostSeconds = 1e9;
    return SearchClock::now() + std::chrono::duration_cast<SearchClock::duration>(
                                    std::chrono::duration<double>(std::min(kMostSeconds, seconds)));
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

  // Returns the next combinations from `next` on, before `end`, that are plans, and counts the
  // others.
  std::vector<Look> next_plans(const SearchPlace& at, std::uint64_t& next, std::uint64_t end) {
    std::vector<Look> looks;
    while (next < end && looks.size() < (deadline_ ? kBlockInTime : kBlock)) {
      PlanOrReason made = at.space.draft(next, at.base.plan, at.base.model,
                                         static_cast<std::int64_t>(at.places.chips.size()));
      if (made.plan) {
        looks.push_back({.number = next++, .plan = std::move(*made.plan)});
      } else {
        made.why.numbers = std::min(made.why.numbers, end - next);
        exclude(made.why);
        next += made.why.numbers;
      }
    }
    return looks;
  }

  void look_at(std::size_t place, Look& look) {
    PlanBench& bench = *benches_[place];
    look.plan = bench.settled(std::move(look.plan));
    if (const auto problem = bench.problem_of(look.plan)) {
      const std::string key = problem->field.substr(problem->field.find('.') + 1);
      look.why = {.reason = "rule of " + key, .message = key + " " + problem->message};
      return;
    }
    const PlanBounds::Quick bounds = bench.memory_and_quick(look.plan);
    look.candidate = {.place = place,
                      .number = look.number,
                      .chips = look.plan.mesh.ranks(),
                      .memory = bounds.memory,
                      .usable = bench.usable(look.plan, options_),
                      .step = bounds.step};
  }

  void bound_all(std::size_t place) {
    const std::uint64_t size = benches_[place]->place().space.size();
    if (!deadline_) return bound_part(place, 0, size);
    // Parts from all over the space, so that those that are reached are like the others.
    constexpr std::uint64_t kParts = 509;  // a prime
    constexpr std::uint64_t kStride = 314;
    const std::uint64_t length = size / kParts + 1;
    const SearchClock::time_point begin = SearchClock::now();
    bool goes_on = true;
    for (std::uint64_t i = 0; i < kParts; ++i) {
      const std::uint64_t from = i * kStride % kParts * length;
      if (from >= size) continue;
      const std::uint64_t end = std::min(size, from + length);
      if (goes_on) {
        bound_part(place, from, end);
      } else {
        leave_out(place, from, end);
      }
      // Going on is worth it if it comes to its end.
      constexpr std::uint64_t kTrial = 16;
      const auto taken = SearchClock::now() - begin;
      if (i == kTrial) goes_on = begin + taken * (kParts / kTrial) < *bounds_until_;
    }
  }

  void bound_part(std::size_t place, std::uint64_t next, std::uint64_t end) {
    const SearchPlace& at = benches_[place]->place();
    while (next < end) {
      if (is_late() || (bounds_until_ && SearchClock::now() >= *bounds_until_)) {
        return leave_out(place, next, end);
      }
      std::vector<Look> looks = next_plans(at, next, end);
      for_each_in_parallel(looks.size(), options_.threads,
                           [&](std::size_t i) { look_at(place, looks[i]); });
      for (const Look& look : looks) {
        if (!look.candidate) {
          exclude(look.why);
        } else if (!first_.contains({place, look.number})) {
          ++result_.considered;
          keep(*look.candidate);
        }
      }
      report(false);
    }
  }

  // Counts plans that time is too short for.
  void leave_out(std::size_t place, std::uint64_t from, std::uint64_t end) {
    const auto known = static_cast<std::uint64_t>(
        std::distance(first_.lower_bound({place, from}), first_.lower_bound({place, end})));
    if (end - from == known) return;
    result_.considered += end - from - known;
    result_.excluded["not reached"] += end - from - known;
    has_unbounded_ = true;
    left_out_[{place, from}] = end;
  }
  bool is_left_out(std::size_t place, std::uint64_t number) const {
    const auto behind = left_out_.upper_bound({place, number});
    if (behind == left_out_.begin()) return false;
    const auto& [from, end] = *std::prev(behind);
    return from.first == place && number < end;
  }

  // Sorts out a plan by its bound of memory.
  void keep(const Candidate& candidate) {
    result_.has_plans = true;
    if (candidate.memory <= candidate.usable) {
      candidates_.push_back(candidate);
      return;
    }
    ++result_.excluded[reason_of(candidate)];
    std::vector<Candidate>& others = is_tight(candidate) ? tight_ : too_large_;
    others.push_back(candidate);
    if (!is_tight(candidate)) leave_nearest();
  }
  // Fits by its bound, but can't leave the headroom.
  bool is_tight(const Candidate& candidate) const {
    return candidate.memory <= benches_[candidate.place]->capacity();
  }
  const char* reason_of(const Candidate& candidate) const {
    return is_tight(candidate) ? "headroom" : "memory";
  }
  void leave_nearest() {
    std::ranges::sort(too_large_, {}, [](const Candidate& candidate) {
      return std::tie(candidate.memory, candidate.place, candidate.number);
    });
    if (too_large_.size() > kNearest) too_large_.resize(kNearest);
  }

  // ---- with a limit of time: first plans ----

  // Goes on longer while there is no answer at all.
  void find_first(SearchClock::time_point until_answered) {
    const auto ends_at = [&] { return best_values_.empty() ? *bounds_until_ : until_answered; };
    const SearchClock::time_point soon = after(kUntilSoon * *options_.time_limit_s);
    is_first_ = true;
    for (int idle = 0; idle < kIdleRounds && may_go_on(ends_at());) {
      const SearchClock::time_point until = ends_at();
      const SearchClock::time_point begin = SearchClock::now();
      const double before = best_value();
      // At first just until there is something to simulate.
      const std::vector<std::size_t> ends = descend(seed_, [&](const Descent& descent) {
        const bool is_soon = seed_ > 0 || SearchClock::now() < soon || !descent.has_roomy();
        return is_soon && may_go_on(until);
      });
      if (seed_ == 0) simulate_shortest();
      seed_ += options_.threads;
      for (const std::size_t end : ends) {
        if (candidates_[end].is_done) continue;  // as the shortest
        if (takes_until(candidates_[end]) < until) simulate_timed(end);
      }
      // As long again for plans that were met on the way, those with the best bounds first.
      const SearchClock::time_point now = SearchClock::now();
      const SearchClock::time_point half = std::min(until, now + (now - begin));
      while (may_go_on(half) && simulate_met(until)) {
      }
      idle = best_value() < before ? 0 : idle + 1;
    }
    is_first_ = false;
  }

  bool may_go_on(SearchClock::time_point until) const {
    if (options_.goes_on && !options_.goes_on()) {
      throw SimulationInterrupted("the search was interrupted");
    }
    return !is_late() && SearchClock::now() < until;
  }
  double best_value() const { return best_values_.empty() ? kInfinite : best_values_.front(); }

  // Simulates the roomy plan that takes least to simulate, so that there is an answer.
  void simulate_shortest() {
    std::optional<std::size_t> shortest;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].is_done || !is_roomy(candidates_[i])) continue;
      const auto order = [&](std::size_t at) {
        return std::pair(candidates_[at].passes, candidates_[at].step);
      };
      if (!shortest || order(i) < order(*shortest)) shortest = i;
    }
    if (shortest) simulate_timed(*shortest);
  }
  bool is_roomy(const Candidate& candidate) const {
    return static_cast<double>(candidate.memory.value()) * margin_ <=
           static_cast<double>(candidate.usable.value());
  }
  // Returns when a simulation that begins now would end, from what others took a pass of a layer.
  SearchClock::time_point takes_until(const Candidate& candidate) const {
    return after(seconds_of_pass_ * static_cast<double>(candidate.passes));
  }

  // Lets a descent from each seed go down in each place. Returns where they ended, by candidate.
  std::vector<std::size_t> descend(std::uint64_t seed,
                                   const std::function<bool(const Descent&)>& goes_on) {
    std::vector<std::unique_ptr<Descent>> descents;
    for (std::size_t i = 0; i < options_.threads * benches_.size(); ++i) {
      descents.push_back(
          std::make_unique<Descent>(*benches_[i % benches_.size()], options_, margin_));
    }
    std::vector<std::optional<RatedPlan>> found(descents.size());
    for_each_in_parallel(descents.size(), options_.threads, [&](std::size_t i) {
      const Descent& descent = *descents[i];
      found[i] = descents[i]->from(seed + i / benches_.size(), [&] { return goes_on(descent); });
    });
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < descents.size(); ++i) {
      const std::size_t place = i % benches_.size();
      for (const auto& [number, plan] : descents[i]->seen()) {
        if (!first_.insert({place, number}).second) continue;
        if (!is_bounded_) {
          ++result_.considered;
        } else if (is_left_out(place, number)) {
          forget_reason("not reached", 1);
        } else {
          continue;  // has its bounds
        }
        keep({.place = place,
              .number = number,
              .chips = plan.chips,
              .memory = plan.memory,
              .usable = plan.usable,
              .step = plan.step,
              .passes = plan.microbatches * benches_[place]->place().base.model.layers,
              .is_close = plan.step > Duration()});
      }
      if (!found[i]) continue;
      const auto at = std::ranges::find_if(candidates_, [&](const Candidate& candidate) {
        return candidate.place == place && candidate.number == found[i]->number;
      });
      if (at == candidates_.end() || at->is_done || is_too_slow(*at)) continue;
      const auto index = static_cast<std::size_t>(at - candidates_.begin());
      if (std::ranges::count(ends, index) == 0) ends.push_back(index);
    }
    return ends;
  }

  // Simulates the plan with the best bound of those that probably leave the headroom, and are done
  // by then. Returns false if there is none that may be better than the best ones.
  bool simulate_met(SearchClock::time_point until) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      if (candidate.is_done || !candidate.is_close) continue;
      if (is_too_slow(candidate) || !is_roomy(candidate)) continue;
      if (takes_until(candidate) >= until) continue;
      if (!best || bound_of(candidate) < bound_of(candidates_[*best])) best = i;
    }
    if (!best || bound_of(candidates_[*best]) >= best_value()) return false;
    const double bound = bound_of(candidates_[*best]);
    simulate_timed(*best);
    return candidates_[*best].is_done || bound_of(candidates_[*best]) > bound;
  }

  // Simulates one plan, and learns how fast that is: small ones take longer for each pass.
  void simulate_timed(std::size_t candidate) {
    const std::uint64_t before = result_.simulated;
    const SearchClock::time_point begin = SearchClock::now();
    simulate({candidate});
    if (result_.simulated == before || candidates_[candidate].passes == 0) return;
    const double seconds = std::chrono::duration<double>(SearchClock::now() - begin).count();
    const double of_pass = seconds / static_cast<double>(candidates_[candidate].passes);
    seconds_of_pass_ = seconds_of_pass_ == 0 ? of_pass : std::min(seconds_of_pass_, of_pass);
  }

  // What plans need above their bounds, from those that turned out not to fit.
  void learn_margin(const Candidate& candidate, const FoundPlan& plan) {
    if (is_accepted(plan)) return;
    const double ratio = static_cast<double>(plan.peak.value()) /
                         static_cast<double>(std::max<std::int64_t>(1, candidate.memory.value()));
    margin_ = std::clamp(ratio, margin_, kMostMargin);
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

  // What no plan of the place is better than, whether it was looked at or not.
  double least_of(std::size_t place) const {
    const auto chips = static_cast<std::int64_t>(benches_[place]->place().places.chips.size());
    const Candidate all{.place = place, .chips = chips, .step = benches_[place]->least_step()};
    const bool needs_all =
        options_.objective == Objective::kStep || options_.objective == Objective::kCost;
    return needs_all ? bound_of(all) : 0;
  }

  bool is_asked(std::size_t place) const { return !only_ || *only_ == place; }

  // The best plan of a place; nullptr if none may be listed.
  const FoundPlan* best_of(std::size_t place) const {
    const FoundPlan* best = nullptr;
    for (const FoundPlan& plan : fitting_) {
      if (plan.place != place) continue;
      if (best == nullptr || order_of(plan) < order_of(*best)) best = &plan;
    }
    return best;
  }

  // The objective of the last of the best plans, or of the best one of a place that is looked at
  // alone; infinite while there are too few.
  double threshold() const {
    if (only_) {
      const FoundPlan* const best = best_of(*only_);
      return best == nullptr ? kInfinite : value_of(*best, options_.objective);
    }
    if (best_values_.size() < options_.top) return kInfinite;
    return best_values_[options_.top - 1];
  }

  // Simulates until no plan that is left is better than the threshold. Returns what none of them is
  // better than.
  double simulate_best() {
    std::priority_queue<Node> queue;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      if (!candidate.is_done && is_asked(candidate.place))
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
    for (std::size_t place = 0; place < benches_.size(); ++place) {
      if (!is_asked(place)) continue;
      bound = std::min(bound, unfinished_bounds_[place]);
      if (has_unbounded_) bound = std::min(bound, least_of(place));
    }
    return bound;
  }

  // How much better than `best` a plan may be if none is better than `bound`, as a share.
  double gap_of(double bound, double best) const {
    if (bound > threshold() || bound == kInfinite) return 0;
    return best == kInfinite ? 1 : best == 0 ? 0 : std::max(0.0, 1 - bound / best);
  }

  void find_best() {
    const double bound = simulate_best();
    result_.bound_gap = gap_of(bound, best_value());
    if (bound <= threshold() && bound != kInfinite) next_bound_ = bound;
  }

  void find_best_of_places() {
    for (std::size_t place = 0; place < benches_.size(); ++place) {
      only_ = place;
      const double bound = simulate_best();
      BestOfPlace& best = result_.best_of_places.emplace_back();
      best.bound_gap = gap_of(bound, threshold());
      if (const FoundPlan* const plan = best_of(place)) best.plan = *plan;
    }
    only_.reset();
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
    // At first a plan only counts if it is better than all.
    if (is_first_ && options_.objective == Objective::kStep && !best_values_.empty()) {
      return Duration(std::llround(best_value() * kPicosecondsPerSecond));
    }
    const Duration most = std::max(most_of_best(candidate), most_of_front(candidate));
    if (!options_.gives_up || most == Duration::max()) return std::nullopt;
    return most;
  }

  void simulate(const std::vector<std::size_t>& round) {
    std::vector<SimulatedPlan> done(round.size());
    std::vector<std::optional<Duration>> limits(round.size());
    const std::size_t workers = options_.helpers.size() + options_.threads;
    for_each_in_parallel(round.size(), workers, [&](std::size_t i) {
      const Candidate& candidate = candidates_[round[i]];
      limits[i] = most_step(candidate);
      done[i] = simulated_somewhere(candidate, limits[i]);
    });
    begun_ += round.size();
    for (std::size_t i = 0; i < round.size(); ++i) {
      Candidate& candidate = candidates_[round[i]];
      if (is_first_ && done[i].is_slower) {
        // It may still be one of the list: then it is simulated again.
        candidate.step = std::max(candidate.step, *limits[i]);
        result_.ops += done[i].ops;
        continue;
      }
      candidate.is_done = done[i].plan || done[i].cannot_run || done[i].is_slower;
      if (done[i].cannot_run) ++result_.excluded["can't run"];
      if (done[i].is_slower) {
        ++result_.excluded["worse while simulated"];
        result_.ops += done[i].ops;
      }
      if (!candidate.is_done) {
        double& unfinished = unfinished_bounds_[candidate.place];
        unfinished = std::min(unfinished, bound_of(candidate));
      }
      if (!done[i].plan) continue;
      result_.ops += done[i].ops;
      done[i].plan->place = candidate.place;
      done[i].plan->number = candidate.number;
      learn_margin(candidate, *done[i].plan);
      take(std::move(*done[i].plan));
    }
    report(false);
  }

  void take(FoundPlan plan) {
    ++result_.simulated;
    if (!is_accepted(plan)) {
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

  bool is_accepted(const FoundPlan& plan) const {
    return plan.leaves_headroom || (accepts_likely_ && plan.fits);
  }

  // ---- nothing leaves the headroom, or fits ----

  // Goes on with plans that fit by prediction.
  void take_likely() {
    accepts_likely_ = true;
    std::vector<FoundPlan> simulated = std::exchange(result_.nearest, {});
    result_.simulated -= simulated.size();
    for (FoundPlan& plan : simulated) take(std::move(plan));
    forget_reason("headroom", tight_.size());
    candidates_.insert(candidates_.end(), tight_.begin(), tight_.end());
    tight_.clear();
    find_best();
  }
  void forget_reason(const std::string& reason, std::uint64_t count) {
    if (count == 0) return;
    const auto found = result_.excluded.find(reason);
    found->second -= count;
    if (found->second == 0) result_.excluded.erase(found);
  }

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
    too_large_.insert(too_large_.end(), tight_.begin(), tight_.end());
    leave_nearest();
    for (const Candidate& candidate : too_large_) {
      if (is_late()) break;
      auto found =
          benches_[candidate.place]->simulated(plan_of(candidate), options_, deadline_).plan;
      if (!found) continue;
      ++begun_;
      found->place = candidate.place;
      found->number = candidate.number;
      forget_reason(reason_of(candidate), 1);
      take(std::move(*found));
    }
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
  std::optional<SearchClock::time_point> bounds_until_{};
  std::vector<std::unique_ptr<PlanBench>> benches_;
  std::uint64_t all_ = 0;
  std::uint64_t begun_ = 0;  // simulations
  std::vector<Candidate> candidates_;
  std::vector<Candidate> too_large_;  // a few, least memory first
  std::vector<Candidate> tight_;      // fit by their bounds, but can't leave the headroom
  std::set<std::pair<std::size_t, std::uint64_t>> first_;  // met by descents: place and number
  double margin_ = 1.1;                                    // of memory over its bound, for descents
  bool is_first_ = false;                                  // in find_first()
  std::uint64_t seed_ = 0;                                 // of the next descent
  double seconds_of_pass_ = 0;                             // that simulations took, at most
  bool accepts_likely_ = false;                            // plans that fit by prediction alone
  bool has_unbounded_ = false;
  bool is_bounded_ = false;  // bound_all() is through
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> left_out_;  // place, from: end
  std::uint64_t ops_of_front_ = 0;         // of the simulations for the front
  std::vector<double> unfinished_bounds_;  // least of a place, of simulations that did not finish
  std::optional<std::size_t> only_{};      // the place whose best plan is looked for
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

std::string_view name_of(SearchOutcome outcome) {
  constexpr std::array<std::string_view, kSearchOutcomes> kNames = {
      "found", "likely", "nothing fits", "not fast enough", "not known"};
  return kNames[static_cast<std::size_t>(outcome)];
}

SearchOutcome outcome_of(const SearchResult& result) {
  if (!result.best.empty()) {
    return result.best.front().leaves_headroom ? SearchOutcome::kFound : SearchOutcome::kLikely;
  }
  if (result.excluded.contains("not reached")) return SearchOutcome::kNotKnown;
  return result.least_step ? SearchOutcome::kNotFast : SearchOutcome::kNothingFits;
}

std::pair<int, double> merit_of(const FoundPlan& plan, const SearchOptions& options) {
  enum { kLeavesHeadroom, kFits, kTooLarge };
  if (plan.leaves_headroom) return {kLeavesHeadroom, value_of(plan, options.objective)};
  if (plan.fits && options.takes_likely) return {kFits, value_of(plan, options.objective)};
  return {kTooLarge, static_cast<double>(plan.peak.value())};
}

std::vector<FoundPlan> starts_of_refinement(const SearchResult& result) {
  constexpr std::size_t kStarts = 3;
  std::vector<FoundPlan> starts = result.best.empty() ? result.nearest : result.best;
  if (starts.size() > kStarts) starts.resize(kStarts);
  for (const BestOfPlace& best : result.best_of_places) {
    const auto is_best = [&](const FoundPlan& plan) {
      return plan.place == best.plan->place && plan.number == best.plan->number;
    };
    if (best.plan && std::ranges::none_of(starts, is_best)) starts.push_back(*best.plan);
  }
  return starts;
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
  const PlanBounds::Quick quick = bench.memory_and_quick(plan);
  verdict.memory_bound = quick.memory;
  verdict.step_bound = std::max(quick.step, bench.close(plan));
  verdict.found = bench.simulated(plan, options).plan;
  return verdict;
}

}  // namespace stepsim
