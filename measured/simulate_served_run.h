// simulate_served_run() simulates what a row of a table of serving runs served, as `stepsim serve`
// would.
//
//   PlanTimes times(run.plan);
//   const ServedFigures figures = simulate_served_run(run, times, times);
//
// PlanTimes keeps the passes of a plan that were simulated, so runs of one plan are cheap behind
// the first.

#pragma once

#include <functional>
#include <map>
#include <utility>

#include "experiment/passes/pass_times.h"
#include "measured/served_run.h"
#include "serving/passes/kv_room.h"
#include "serving/passes/simulated_step_cost.h"
#include "sim/base/units.h"

namespace stepsim {

class PlanTimes {
 public:
  // Throws ConfigError.
  explicit PlanTimes(const ServedPlan& plan);

  StepCost& cost() { return cost_; }
  std::int64_t chips() const { return experiment_.plan.mesh.ranks(); }
  const ChipSpec& chip() const { return experiment_.cluster.chip; }
  // Makes the options those of all data-parallel ranks, with as many blocks as fit in the engine's
  // share of the memory, or in nearly all of it where none fits in its share. Throws ConfigError if
  // none does.
  void complete(EngineOptions& engine);

 private:
  Experiment experiment_;
  PassTimes times_;
  SimulatedStepCost cost_;
  std::map<std::pair<std::int64_t, std::int64_t>, LargestPass> passes_{};  // by what they compute
};

struct ServedFigures {
  Duration tpot{};  // means
  Duration ttft{};
  double output_tokens_per_s = 0;
};

// `goes_on` is asked now and then, and may be empty. `decode` may be `replicas`. Throws
// ConfigError, ServingStuck; SimulationInterrupted if goes_on() returns false.
ServedFigures simulate_served_run(const ServedRun& run, PlanTimes& replicas, PlanTimes& decode,
                                  const std::function<bool()>& goes_on = {});

}  // namespace stepsim
