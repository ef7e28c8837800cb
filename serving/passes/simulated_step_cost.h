// SimulatedStepCost takes the time of a replica's step from passes over a cluster
// (experiment/pass_times.h): requests that decode are a group with their mean context, each chunk
// of a prompt is a group of its own.
//
// A replica is all data-parallel ranks of its plan: each takes an equal part
// of the requests that decode, and the chunks in turn. Not modelled: ranks that wait for the
// fullest.

#pragma once

#include "experiment/pass_times.h"
#include "serving/step_cost.h"

namespace stepsim {

class SimulatedStepCost final : public StepCost {
 public:
  // `ranks`: data-parallel ranks of the plan. `times` must outlive this.
  SimulatedStepCost(PassTimes& times, std::int64_t ranks) : times_(times), ranks_(ranks) {}
  Duration time_of(const Batch& batch) override;

 private:
  PassTimes& times_;
  std::int64_t ranks_;
  RequestBatch pass_{};  // kept for its memory
};

}  // namespace stepsim
