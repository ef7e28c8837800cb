// Goodput: many runs of one training, what they have in common, and what changes them.
//
//   const RunSetup setup = plan_runs(table, job, times);
//   const GoodputResult result = run_many(setup, {.runs = 1000, .seed = 1});
//
// Run i of a seed has the same failures in every setup (common random numbers), so differences
// between setups are known far better than the results.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "goodput/training_run.h"

namespace stepsim {

// JobShape is a training job on its nodes, and what one step of it is.
struct JobShape {
  Ticks work = 0;  // of all steps
  Ticks step = 1;
  std::int64_t chips = 1;
  std::int64_t chips_per_node = 1;
  std::int64_t chips_per_leaf = 1;
  std::int64_t chips_per_pod = 1;
  std::int64_t replicas = 1;
  std::int64_t least_replicas = 1;
  std::vector<double> missing_slowdown{1};  // by replicas that are missing
  std::vector<double> slow_slowdown{};      // of a step, by class; only slow ones count
  std::int64_t spare_groups = 1;  // over which nodes and spares are spread: pods, or leaves
  double far_slowdown = 1;        // of a step, with a node that is a spare of another group
};

// What a checkpoint costs.
struct CheckpointTimes {
  Ticks copy_stall = 0;  // host and peer
  Ticks copy_flush = 0;
  Ticks storage_stall = 0;
  Ticks storage_flush = 0;
  std::array<Ticks, kCheckpointPlaces> load{};
};

// Returns the setup of runs, with the best intervals where the table leaves them open. Throws
// ConfigError with every problem: intervals longer than the run, a checkpoint that is not written
// before the next one, jobs that never get anywhere.
RunSetup plan_runs(const FailureTable& table, const JobShape& job, const CheckpointTimes& times);

struct GoodputOptions {
  std::int64_t runs = 1000;
  std::uint64_t seed = 1;
  std::function<void(double share)> progress{};
};

struct GoodputResult {
  std::int64_t runs = 0;
  double mean_days = 0;
  double p10_days = 0;
  double p90_days = 0;
  double standard_error_days = 0;
  double goodput = 0;  // productive time of all runs over all of their time
  std::array<double, kRunParts> parts_days{};
  double failures = 0;  // of a run
  std::vector<double> failures_by_class{};
  double restarts = 0;
  double undetected = 0;
  std::uint64_t events = 0;
};

// Throws RunStuck.
GoodputResult run_many(const RunSetup& setup, const GoodputOptions& options);

// ---- what if ----

struct CurvePoint {
  double x = 0;
  GoodputResult result{};
};

// Goodput by interval of the first place, from an eighth to eight times that of the setup. `step`
// is the least.
std::vector<CurvePoint> interval_curve(const RunSetup& setup, Ticks step,
                                       const GoodputOptions& options);

// Goodput by number of spares: 0, 1, 2, 4, ... until more change nothing. It includes that of the
// setup.
std::vector<CurvePoint> spares_curve(const RunSetup& setup, const GoodputOptions& options);

// The point of the best goodput a node that is paid for, spares included.
std::size_t best_spares(const std::vector<CurvePoint>& curve, std::int64_t nodes);
// The point of the most goodput.
std::size_t best_point(const std::vector<CurvePoint>& curve);

// Days with half and with twice the failures of a class, checkpoints as they are.
struct ClassSensitivity {
  std::size_t of = 0;
  double half_days = 0;
  double twice_days = 0;
};
std::vector<ClassSensitivity> class_sensitivity(const RunSetup& setup,
                                                const GoodputOptions& options);

}  // namespace stepsim
