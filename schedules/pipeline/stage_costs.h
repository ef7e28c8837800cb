// StageCosts is what the ops of every global stage of a pipeline take: one PipelineCosts where all
// stages are alike, else one a stage.
//
//   const StageCosts even = PipelineCosts{10, 12, 8, 1};
//   const StageCosts uneven = std::vector<PipelineCosts>{{10, 12, 8, 1}, {10, 12, 8, 1},
//                                                        {14, 20, 9, 1}};
//   uneven.at(2).forward                    // 14
//   replay(schedule, uneven)
//
// The send time of a stage is that of messages between it and the next one, both ways. A fused op
// takes the fused time of its forward's stage or, where none is given, the times of its forward and
// of its backward on their stages.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

class StageCosts {
 public:
  StageCosts(const PipelineCosts& of_all) : costs_{of_all} {}
  // By global stage. Stages that are all alike are one PipelineCosts again. REQUIRES: not empty.
  StageCosts(std::vector<PipelineCosts> by_stage);

  bool are_even() const { return costs_.size() == 1; }
  const PipelineCosts& at(std::int32_t stage) const {
    return costs_[are_even() ? 0 : static_cast<std::size_t>(stage)];
  }
  // One, or one a stage.
  const std::vector<PipelineCosts>& listed() const { return costs_; }

 private:
  std::vector<PipelineCosts> costs_;
};

// How long an op of a rank takes.
std::int64_t time_of(const PipelineSchedule& schedule, std::int32_t rank, const PipelineOp& op,
                     const StageCosts& costs);

// The longest time of each kind of op among all stages; the (lower) median time of each kind.
PipelineCosts longest_stage(const StageCosts& costs);
PipelineCosts median_stage(const StageCosts& costs);

// Like unit_of() and in_units() for PipelineCosts.
std::int64_t unit_of(const StageCosts& costs);
StageCosts in_units(const StageCosts& costs, std::int64_t unit);

// The same model cut into `to` stages instead of `from`, each stage's work spread evenly over it:
// a stage that is cut in two gives two halves. Times come out in 1/`fine` of the unit.
// REQUIRES: fine is a multiple of lcm(from, to) / from. No fused time if uneven.
StageCosts recut(const StageCosts& costs, std::int64_t from, std::int64_t to, std::int64_t fine);

}  // namespace stepsim
