// SimulatedStepCost takes the time of a replica's step from passes over a cluster
// (experiment/passes/pass_times.h): requests that decode are a group with their mean context, each
// chunk of a prompt is a group of its own.
//
// A replica is all data-parallel ranks of its plan: each takes an equal part of the requests that
// decode, and the chunks go to the rank that has the fewest tokens. A step takes as long as that of
// the rank with the most.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "experiment/passes/pass_times.h"
#include "serving/step_cost.h"

namespace stepsim {

class SimulatedStepCost final : public StepCost {
 public:
  // `ranks`: data-parallel ranks of the plan. `times` must outlive this.
  SimulatedStepCost(PassTimes& times, std::int64_t ranks) : times_(times), ranks_(ranks) {}
  Duration time_of(const Batch& batch) override;

 private:
  void add_chunks_of_fullest(const Batch& batch);

  PassTimes& times_;
  std::int64_t ranks_;
  // Kept for their memory.
  RequestBatch pass_{};
  std::vector<std::int64_t> loads_{};  // tokens of chunks, by rank
  std::vector<std::ptrdiff_t> rank_of_chunk_{};
};

}  // namespace stepsim
