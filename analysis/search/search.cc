#include "analysis/search/search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <queue>
#include <tuple>
#include <utility>

#include "analysis/search/plan_bounds.h"
#include "analysis/step/finished_run.h"
#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "sim/base/parallel.h"
#include "sim/hardware/group_links.h"

namespace stepsim {
namespace {

constexpr std::size_t kBlock = 1024;        // plans between two looks at the clock
constexpr std::size_t kRoundOfBounds = 64;  // plans whose bounds are made closer at a time
constexpr std::size_t kRoundOfRuns = 8;     // plans that are simulated at a time
constexpr std::size_t kNearest = 3;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kSecondsOfHour = 3600;

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

// What became of a simulation: a plan's result, ranks that wait for each other forever or can't run
// a collective, or neither as time was up.
struct Simulated {
  std::optional<FoundPlan> plan{};
  bool cannot_run = false;
};

// The hardware of plans that offload, or leave units to communication, is another.
struct Hardware {
  Cluster cluster;
  std::unique_ptr<PlanBounds> bounds;
};

// Bench does what needs the hardware of one place. Several threads may use it.
class Bench {
 public:
  explicit Bench(const SearchPlace& place) : place_(place) {}

  // Returns the first problem; unset: the plan can run.
  std::optional<Problem> problem_of(const ParallelPlan& plan) const {
    std::vector<Problem> problems = problems_of(plan);
    if (problems.empty()) return std::nullopt;
    return std::move(problems.front());
  }
  std::vector<Problem> problems_of(const ParallelPlan& plan) const {
    return check(plan, place_.base.model, place_.base.cluster, place_.places);
  }

  Bytes memory(const ParallelPlan& plan) { return hardware(plan).bounds->memory(plan); }
  Duration quick(const ParallelPlan& plan) { return hardware(plan).bounds->quick(plan); }
  Duration close(const ParallelPlan& plan) { return hardware(plan).bounds->close(plan); }

  // Ends without a plan if the deadline comes first.
  Simulated simulated(const ParallelPlan& plan, const SearchOptions& options,
                      std::optional<TimePoint> deadline = {}) {
    Experiment experiment = place_.base;
    experiment.plan = plan;
    const Cluster& cluster = hardware(plan).cluster;
    ExperimentOptions run;
    if (deadline) {
      run.progress_context = &*deadline;
      run.progress = [](void* context, Time, std::uint64_t, std::uint64_t) {
        return Clock::now() < *static_cast<const TimePoint*>(context);
      };
    }
    try {
      const SimulatedExperiment done = simulate_experiment(experiment, cluster, run);
      return {.plan = found(experiment, cluster, done, options)};
    } catch (const DeadlockError&) {
      return {.cannot_run = true};
    } catch (const ConfigError&) {
      return {.cannot_run = true};  // a group can't run the algorithm of a collective
    } catch (const SimulationInterrupted&) {
      return {};
    }
  }

  Bytes capacity() const { return place_.base.cluster.chip.memory_capacity; }
  const SearchPlace& place() const { return place_; }
  double cost(Duration step, std::int64_t chips) const {
    return to_seconds(step) * static_cast<double>(chips) / kSecondsOfHour *
           place_.chip_hour.value_or(1);
  }

 private:
  Hardware& hardware(const ParallelPlan& plan) {
    const std::scoped_lock lock(mutex_);
    std::unique_ptr<Hardware>& made = hardware_[{plan.offloads(), plan.sm_margin}];
    if (!made) {
      Experiment experiment = place_.base;
      experiment.plan = plan;
      const TopologySpec& topology = experiment.cluster.topology;
      made = std::make_unique<Hardware>(Hardware{
          cluster_for_steps(experiment, build_topology(topology, experiment.cluster.faults)),
          nullptr});
      made->bounds = std::make_unique<PlanBounds>(place_.base.model, made->cluster);
    }
    return *made;
  }

  FoundPlan found(const Experiment& experiment, const Cluster& cluster,
                  const SimulatedExperiment& done, const SearchOptions& options) const {
    const SimulatedStep& run = done.runs.front();
    const SimulationResult& result = run.result;
    const FinishedRun finished{experiment,  cluster,    done.graph,
                               run.options, run.result, run.metrics};
    const Situation situation = situation_of(experiment, chips_per_node(cluster.places));
    return {.plan = experiment.plan,
            .step = result.step_time,
            .step_interval_s = interval_of(options.intervals, PredictedMetric::kStepTime, situation,
                                           to_seconds(result.step_time)),
            .peak = result.memory_peaks[result.peak_rank.index()].bytes,
            .fits = fits(finished),
            .mfu = run.metrics.model_flops_utilization,
            .chips = run.metrics.chips,
            .cost = cost(result.step_time, run.metrics.chips),
            .breakdown = result.breakdown,
            .axes = done.graph.axes};
  }

  const SearchPlace& place_;
  std::mutex mutex_;  // guards hardware_
  std::map<std::pair<bool, std::int64_t>, std::unique_ptr<Hardware>> hardware_;
};

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

double value_of(const FoundPlan& plan, Objective objective) {
  switch (objective) {
    case Objective::kStep:
      return to_seconds(plan.step);
    case Objective::kMemory:
      return static_cast<double>(plan.peak.value());
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
  Search(const std::vector<SearchPlace>& places, const SearchOptions& options) : options_(options) {
    if (options.time_limit_s) {
      deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(*options.time_limit_s));
    }
    for (const SearchPlace& place : places) benches_.push_back(std::make_unique<Bench>(place));
    for (const SearchPlace& place : places) all_ += place.space.size();
  }

  SearchResult run() {
    for (std::size_t place = 0; place < benches_.size(); ++place) bound_all(place);
    find_best();
    if (fitting_.empty()) find_nearest();
    if (options_.wants_front) find_front();
    count_left();
    std::ranges::sort(fitting_, {}, [&](const FoundPlan& plan) { return order_of(plan); });
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
    if (options_.most_simulated && result_.simulated >= *options_.most_simulated) return true;
    return deadline_ && Clock::now() >= *deadline_;
  }

  ParallelPlan plan_of(const Candidate& candidate) const {
    return *plan_or_reason(candidate.place, candidate.number).plan;
  }
  PlanOrReason plan_or_reason(std::size_t place, std::uint64_t number) const {
    const SearchPlace& at = benches_[place]->place();
    return at.space.plan(number, at.base.plan, at.base.model,
                         static_cast<std::int64_t>(at.places.chips.size()));
  }

  // ---- 1 and 2: rules and bounds ----

  void bound_all(std::size_t place) {
    struct Looked {
      NoPlan why{};
      std::optional<Candidate> candidate{};
    };
    const std::uint64_t size = benches_[place]->place().space.size();
    for (std::uint64_t first = 0; first < size; first += kBlock) {
      if (is_late()) {
        result_.considered += size - first;
        result_.excluded["not reached"] += size - first;
        has_unbounded_ = true;
        return;
      }
      const std::size_t count = std::min<std::uint64_t>(kBlock, size - first);
      std::vector<Looked> looked(count);
      for_each_in_parallel(count, options_.threads, [&](std::size_t i) {
        const PlanOrReason made = plan_or_reason(place, first + i);
        if (!made.plan) {
          looked[i].why = made.why;
          return;
        }
        if (const auto problem = benches_[place]->problem_of(*made.plan)) {
          const std::string key = problem->field.substr(problem->field.find('.') + 1);
          looked[i].why = {"rule of " + key, key + " " + problem->message};
          return;
        }
        looked[i].candidate = {.place = place,
                               .number = first + i,
                               .chips = made.plan->ranks(),
                               .memory = benches_[place]->memory(*made.plan)};
        if (looked[i].candidate->memory > benches_[place]->capacity()) return;
        looked[i].candidate->step = benches_[place]->quick(*made.plan);
      });
      for (const Looked& one : looked) {
        ++result_.considered;
        if (one.candidate) {
          result_.has_plans = true;
          keep(*one.candidate);
        } else {
          ++result_.excluded[one.why.reason];
          result_.examples.try_emplace(one.why.reason, one.why.message);
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
        round.push_back(queue.top().candidate);
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

  // Takes plans with quick bounds from the queue and puts them back with close ones.
  template <typename May, typename BoundOf>
  void bring_closer(std::priority_queue<Node>& queue, const May& may, const BoundOf& bound) {
    std::vector<std::size_t> round;
    while (round.size() < kRoundOfBounds && !queue.empty() && may(queue.top()) &&
           !candidates_[queue.top().candidate].is_close) {
      round.push_back(queue.top().candidate);
      queue.pop();
    }
    for_each_in_parallel(round.size(), options_.threads, [&](std::size_t i) {
      Candidate& candidate = candidates_[round[i]];
      candidate.step =
          std::max(candidate.step, benches_[candidate.place]->close(plan_of(candidate)));
      candidate.is_close = true;
    });
    for (const std::size_t i : round) queue.push({bound(candidates_[i]), i});
    report(false);
  }

  void simulate(const std::vector<std::size_t>& round) {
    std::vector<Simulated> done(round.size());
    for_each_in_parallel(round.size(), options_.threads, [&](std::size_t i) {
      const Candidate& candidate = candidates_[round[i]];
      done[i] = benches_[candidate.place]->simulated(plan_of(candidate), options_, deadline_);
    });
    for (std::size_t i = 0; i < round.size(); ++i) {
      Candidate& candidate = candidates_[round[i]];
      candidate.is_done = done[i].plan || done[i].cannot_run;
      if (done[i].cannot_run) ++result_.excluded["can't run"];
      if (!candidate.is_done) unfinished_bound_ = std::min(unfinished_bound_, bound_of(candidate));
      if (!done[i].plan) continue;
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

  void find_nearest() {
    for (const Candidate& candidate : too_large_) {
      if (is_late()) break;
      auto found =
          benches_[candidate.place]->simulated(plan_of(candidate), options_, deadline_).plan;
      if (!found) continue;
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

  void find_front() {
    const auto bound = [](const Candidate& candidate) { return to_seconds(candidate.step); };
    std::priority_queue<Node> queue;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!candidates_[i].is_done) queue.push({bound(candidates_[i]), i});
    }
    std::vector<std::size_t> round;
    while (!queue.empty() || !round.empty()) {
      if (is_late()) {
        result_.front_is_whole = false;
        return;
      }
      if (round.size() == kRoundOfRuns || queue.empty()) {
        std::erase_if(round, [&](std::size_t i) { return is_beaten(candidates_[i]); });
        simulate(std::exchange(round, {}));
        continue;
      }
      const std::size_t next = queue.top().candidate;
      if (is_beaten(candidates_[next])) {
        queue.pop();
      } else if (!candidates_[next].is_close) {
        bring_closer(
            queue, [&](const Node& node) { return !is_beaten(candidates_[node.candidate]); },
            bound);
      } else {
        queue.pop();
        round.push_back(next);
      }
    }
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
      const bool is_worse = fitting_.size() >= options_.top && bound_of(candidate) > threshold() &&
                            (result_.front_is_whole || is_beaten(candidate));
      ++result_.excluded[is_worse ? "worse by its bound" : "not reached"];
    }
  }

  void report(bool is_end) {
    if (!options_.progress) return;
    SearchProgress progress{
        .considered = result_.considered, .all = all_, .simulated = result_.simulated};
    if (!best_values_.empty()) progress.best = best_values_.front();
    if (!is_end) progress.bound = next_bound_;
    options_.progress(progress);
  }

  const SearchOptions& options_;
  std::optional<TimePoint> deadline_{};
  std::vector<std::unique_ptr<Bench>> benches_;
  std::uint64_t all_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> too_large_;  // a few, least memory first
  bool has_unbounded_ = false;
  double unfinished_bound_ = kInfinite;  // least, of plans whose simulation was not finished
  std::vector<FoundPlan> fitting_;
  std::vector<double> best_values_;  // of fitting_, ascending
  std::vector<FoundPlan> front_;     // no plan of fitting_ beats them
  std::optional<double> next_bound_{};
  SearchResult result_{};
};

}  // namespace

std::string_view name_of(Objective objective) {
  constexpr std::array<std::string_view, kObjectives> kNames = {"step", "memory", "cost"};
  return kNames[static_cast<std::size_t>(objective)];
}

SearchResult search_plans(const std::vector<SearchPlace>& places, const SearchOptions& options) {
  return Search(places, options).run();
}

PlanVerdict judge_plan(const SearchPlace& place, const ParallelPlan& plan,
                       const SearchOptions& options) {
  Bench bench(place);
  PlanVerdict verdict{.problems = bench.problems_of(plan)};
  if (!verdict.problems.empty()) return verdict;
  verdict.memory_bound = bench.memory(plan);
  verdict.step_bound = std::max(bench.quick(plan), bench.close(plan));
  verdict.found = bench.simulated(plan, options).plan;
  return verdict;
}

}  // namespace stepsim
