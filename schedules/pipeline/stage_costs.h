// StageCosts are the times of the ops of every global stage of a pipeline: one PipelineCosts if all
// stages are alike, otherwise one per stage.
//
//   const StageCosts even = PipelineCosts{10, 12, 8, 1};
//   const StageCosts uneven = std::vector<PipelineCosts>{{10, 12, 8, 1}, {10, 12, 8, 1},
//                                                        {14, 20, 9, 1}};
//   uneven.at(2).forward                    // 14
//   replay(schedule, uneven)
//
// The send time of a stage is the time of messages between it and the next stage, both ways. A
// fused op takes the fused time of its forward's stage. If there is none, it takes the sum of its
// forward's and its backward's times on their stages.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

class StageCosts {
 public:
  // Costs convert to costs by stage: a caller writes either.
  // NOLINTNEXTLINE(google-explicit-constructor)
  StageCosts(const PipelineCosts& of_all) : costs_{of_all} {}
  // One entry per global stage. If all are alike they are stored as one. REQUIRES: not empty.
  // NOLINTNEXTLINE(google-explicit-constructor)
  StageCosts(std::vector<PipelineCosts> by_stage);

  bool are_even() const { return costs_.size() == 1; }
  const PipelineCosts& at(std::int32_t stage) const {
    return costs_[are_even() ? 0 : static_cast<std::size_t>(stage)];
  }
  // Returns one entry, or one per stage.
  const std::vector<PipelineCosts>& listed() const { return costs_; }

 private:
  std::vector<PipelineCosts> costs_;
};

// Returns the time of an op of a rank.
std::int64_t time_of(const PipelineSchedule& schedule, std::int32_t rank, const PipelineOp& op,
                     const StageCosts& costs);

// longest_stage() returns the longest time of each kind of op over all stages; median_stage()
// returns the (lower) median.
PipelineCosts longest_stage(const StageCosts& costs);
PipelineCosts median_stage(const StageCosts& costs);

// Like unit_of() and in_units() of PipelineCosts.
std::int64_t unit_of(const StageCosts& costs);
StageCosts in_units(const StageCosts& costs, std::int64_t unit);

// Returns the costs of the same model cut into `to` stages instead of `from`. Each stage's work is
// spread evenly over it, so a stage that is cut in two gives two halves. The results are in
// 1/`fine` of the unit. REQUIRES: fine is a multiple of lcm(from, to) / from. There is no fused
// time if the costs are uneven.
StageCosts recut(const StageCosts& costs, std::int64_t from, std::int64_t to, std::int64_t fine);

}  // namespace stepsim
