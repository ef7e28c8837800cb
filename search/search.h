// search_plans() finds the best plans of a space, and the front: the plans that no other beats in
// step time, memory and chips together. What it says is what simulating all of them would say:
//
//   1  combinations that break a rule of plans are counted by rule; no rule is written down twice
//   2  each other one gets lower bounds of memory and time (plan_bounds.h); what can't fit is out
//   3  plans are simulated in the order of their bounds, until the bound of the next one is worse
//      than the results of the best ones. Then none that is left can be better
//      a simulation ends early where it is sure to be slower than those, and than a plan of the
//      front that needs no more memory than its own bound
//      with several places the same is then done for each alone: the best of each is proven, too
//   4  what is left may still be on the front, unless a simulated plan is better than its bounds in
//      everything. Those are simulated, first the one that may be furthest in front
//
// Rounds have a fixed number of plans, and limits that hold for all of a round, so any number of
// threads finds and simulates the same ones.
//
// With a limit of time a good plan comes first: descents (descent.h) look for one without looking
// at all plans, and what they find is simulated. Then come 2, 3 and 4, as far as time allows:
// bounds until kUntilBounds of it, blocks of plans from all over the space. What was not reached is
// counted so, and nothing is said of it but its bound: `bound_gap` says how much better such a plan
// could be.
//
// Plans that fit by their prediction may not leave the headroom. They are listed only where no plan
// does, and only if `takes_likely`.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/uncertainty.h"
#include "search/search_space.h"
#include "sim/network/places.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// kChips: the fewest, and of equally many the fastest.
enum class Objective : std::uint8_t { kStep, kMemory, kCost, kChips };
inline constexpr std::size_t kObjectives = 4;
std::string_view name_of(Objective objective);  // "step"

// What is simulated for the front, besides what was for the best plans. kQuick: a fixed number of
// ops, the same on any machine; in small spaces that is the whole front.
enum class FrontEffort : std::uint8_t { kQuick, kWhole, kNone };

// A cluster, with the model and what all plans on it have in common.
struct SearchPlace {
  Experiment base;  // its plan is the base of all
  Places places;    // its chips
  SearchSpace space;
  std::optional<double> chip_hour{};  // price; unset: cost counts chip-hours
};

struct SearchProgress {
  std::uint64_t considered = 0;
  std::uint64_t all = 0;
  std::uint64_t simulated = 0;    // to the end or not
  std::optional<double> best{};   // objective
  std::optional<double> bound{};  // no plan that is left is better
};

class PlanHelper;  // plan_helper.h

struct SearchOptions {
  Objective objective = Objective::kStep;
  std::size_t top = 10;
  std::optional<Duration> most_step{};  // slower plans are none
  std::optional<double> time_limit_s{};
  std::size_t threads = 1;
  std::vector<std::shared_ptr<PlanHelper>> helpers{};  // simulate besides the threads
  // No further round of simulations begins after so many. Unset: no limit.
  std::optional<std::uint64_t> most_simulated{};
  FrontEffort front = FrontEffort::kQuick;
  // Ends a simulation as soon as its plan is sure to be neither among the best nor on the front.
  // For tests: off, with the same result but for the numbers of plans.
  bool gives_up = true;
  std::vector<IntervalEntry> intervals{};  // of predictions
  Headroom headroom{};                     // what plans must leave free
  bool takes_likely = true;  // lists plans that fit by prediction alone if none leaves the headroom
  // Called now and then from the calling thread. May be empty.
  std::function<void(const SearchProgress&)> progress{};
  // Asked by every thread while it simulates. If it returns false, the search ends with
  // SimulationInterrupted. May be empty.
  std::function<bool()> goes_on{};
};

// A plan that was simulated.
struct FoundPlan {
  std::size_t place = 0;     // index of its SearchPlace
  std::uint64_t number = 0;  // in its space
  ParallelPlan plan{};
  Duration step{};
  std::optional<Interval> step_interval_s{};
  Bytes peak{};
  std::optional<Interval> peak_interval_bytes{};
  bool fits = false;  // in the memory of chips and hosts, by prediction
  FitCertainty certainty = FitCertainty::kNo;
  bool leaves_headroom = false;
  double mfu = 0;
  std::int64_t chips = 0;
  double cost = 0;                 // of a step; chip-hours where there is no price
  std::optional<double> joules{};  // of a step; unset where the chip doesn't say its power
  Breakdown breakdown{};
  std::vector<std::string> axes{};  // names of breakdown.exposed_communication
};

// The best plan of one of several places.
struct BestOfPlace {
  std::optional<FoundPlan> plan{};  // unset: no plan of the place was found that may be listed
  double bound_gap = 0;             // as SearchResult's, of the plans of the place
};

struct SearchResult {
  std::uint64_t considered = 0;
  std::map<std::string, std::uint64_t> excluded{};  // by reason; with `simulated`: all considered
  std::map<std::string, std::string> examples{};  // by reason: what is wrong with a first such plan
  bool has_plans = false;                         // some break no rule
  std::uint64_t simulated = 0;
  std::uint64_t ops = 0;  // of all simulations
  double bound_gap = 0;   // 0: the best plan is proven; 0.02: another may be 2 % better
  bool front_is_whole = true;
  // Where it isn't: a plan that wasn't simulated may have so much less time and memory than each of
  // the front, as a share of its own; at most 1.
  double front_gap = 0;
  std::optional<Duration> front_whole_until{};  // no such plan has a shorter step
  std::vector<FoundPlan> best{};                // that fit, best first
  std::vector<FoundPlan> front{};               // by step time
  std::vector<BestOfPlace> best_of_places{};    // one each, where there are several
  // Where nothing fits: the plans with the least memory. Where what fits is slower than asked: the
  // fastest that were simulated, if any, and what every plan takes at least.
  std::vector<FoundPlan> nearest{};
  std::optional<Duration> least_step{};
};

// What a search ended with.
enum class SearchOutcome : std::uint8_t {
  kFound,        // a plan that leaves the headroom
  kLikely,       // one that fits by prediction
  kNothingFits,  // proven: no plan of the space does
  kNotFast,      // proven: none that fits is as fast as asked
  kNotKnown,     // some were not reached
};
inline constexpr std::size_t kSearchOutcomes = 5;
std::string_view name_of(SearchOutcome outcome);  // "found", "nothing fits"
SearchOutcome outcome_of(const SearchResult& result);

// Returns the plans from which refining goes on: the first of the best, or where nothing fits of
// those that need the least memory, and the best one of each place.
std::vector<FoundPlan> starts_of_refinement(const SearchResult& result);

// How good a plan is, smaller is better: whether it may be listed, and then the objective. Of plans
// that may not, the memory counts.
std::pair<int, double> merit_of(const FoundPlan& plan, const SearchOptions& options);

// What the objective makes smallest: seconds, bytes, cost, or chips and then the step.
double objective_value(const FoundPlan& plan, Objective objective);

SearchResult search_plans(const std::vector<SearchPlace>& places, const SearchOptions& options);

// What one plan would give, and why it isn't among the best.
struct PlanVerdict {
  std::vector<Problem> problems{};  // rules that it breaks; then nothing else is set
  std::optional<FoundPlan> found{};
  Bytes memory_bound{};
  Duration step_bound{};
};
PlanVerdict judge_plan(const SearchPlace& place, const ParallelPlan& plan,
                       const SearchOptions& options);

}  // namespace stepsim
