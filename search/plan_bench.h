// PlanBench does what a search needs the hardware of one place for: rules, bounds and simulations
// of its plans. Several threads may use it.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "experiment/bounds/plan_bounds.h"
#include "experiment/simulate_experiment.h"
#include "search/plan_helper.h"
#include "search/search.h"

namespace stepsim {

using SearchClock = std::chrono::steady_clock;

class PlanBench {
 public:
  // REQUIRES: `place` outlives it.
  explicit PlanBench(const SearchPlace& place) : place_(place) {}

  // Returns the plan of a number of the space. REQUIRES: there is one (PlanOrReason).
  ParallelPlan plan(std::uint64_t number);
  // Works out layout=balanced like balanced() (search_space.h), once for equal pipelines.
  ParallelPlan settled(ParallelPlan plan);

  // Returns the first problem; unset: the plan can run.
  std::optional<Problem> problem_of(const ParallelPlan& plan) const;
  std::vector<Problem> problems_of(const ParallelPlan& plan) const;

  // Bounds (plan_bounds.h).
  Bytes memory(const ParallelPlan& plan) { return hardware(plan).bounds->memory(plan); }
  PlanBounds::Quick memory_and_quick(const ParallelPlan& plan) {
    return hardware(plan).bounds->memory_and_quick(plan);
  }
  Duration close(const ParallelPlan& plan) { return hardware(plan).bounds->close(plan); }

  // Ends without a plan if the deadline comes first, or if its step takes longer than `most_step`.
  SimulatedPlan simulated(const ParallelPlan& plan, const SearchOptions& options,
                          std::optional<SearchClock::time_point> deadline = {},
                          std::optional<Duration> most_step = {});

  Bytes capacity() const { return place_.base.cluster.chip.memory_capacity; }
  // Returns the largest peak of a plan that leaves the headroom.
  Bytes usable(const ParallelPlan& plan, const SearchOptions& options) const;
  // Returns a time that no plan of the place is faster than: its model FLOPs at the peak of all
  // chips. Zero where that is no bound: plans may compute in several types, or drop tokens.
  Duration least_step() const;
  const SearchPlace& place() const { return place_; }
  double cost(Duration step, std::int64_t chips) const;  // of a step

 private:
  // What of a plan changes the hardware: hosts, units left to communication, and the number of
  // chips of which the slowest counts.
  struct HardwareKey {
    bool offloads = false;
    std::int64_t sm_margin = 0;
    std::int64_t chips = 0;  // 0: chips do not differ

    auto operator<=>(const HardwareKey&) const = default;
  };

  struct Hardware {
    Cluster cluster;
    std::unique_ptr<PlanBounds> bounds;
  };

  HardwareKey key_of(const ParallelPlan& plan) const;
  Hardware& hardware(const ParallelPlan& plan);
  std::optional<Interval> interval(PredictedMetric metric, const ParallelPlan& plan,
                                   double predicted, const SearchOptions& options) const;
  FoundPlan found(const Experiment& experiment, const Cluster& cluster,
                  const SimulatedExperiment& done, const SearchOptions& options) const;

  using PipelineKey = std::tuple<std::int64_t, std::int64_t, Placement>;  // ranks, chunks

  const SearchPlace& place_;
  std::mutex mutex_;  // guards the rest
  std::map<PipelineKey, std::vector<std::int64_t>> layouts_;
  std::map<HardwareKey, std::unique_ptr<Hardware>> hardware_;
};

}  // namespace stepsim
