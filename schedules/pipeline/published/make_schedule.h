// make_schedule() makes any published schedule by its name. check() says beforehand which rules of
// the schedule's authors a request breaks.
//
//   const ScheduleRequest request{
//       .name = *schedule_named("zb_h1"), .stages = 8, .microbatches = 32};
//   throw_if_any(check(request));
//   const PipelineSchedule schedule = make_schedule(request);
//
// `optimal`, which is searched for (search/optimal_schedule.h), and schedules from files are not in
// here.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/published/published_schedule.h"
#include "schedules/pipeline/schedule_name.h"
#include "schedules/pipeline/stage_costs.h"
#include "sim/base/error.h"

namespace stepsim {

// The longest time that costs may have. All ops one after the other must fit in 64 bits. In
// picoseconds it is 53.4 days.
inline constexpr std::int64_t kMostTime = std::int64_t{1} << 62;

struct ScheduleRequest {
  ScheduleName name = ScheduleName::kOneForwardOneBackward;
  std::int64_t stages = 0;  // ranks of the pipeline
  std::int64_t microbatches = 0;
  std::optional<std::int64_t> chunks{};            // a rank; unset: the schedule's default
  std::optional<std::int64_t> microbatch_group{};  // for schedules with groups: interleaved.h
  PipelineCosts costs{};  // read by schedules that are planned by times, and by formulas
  // Instead of `costs` where stages differ: one a global stage, all with the same send time.
  std::vector<PipelineCosts> stage_costs{};
  // For schedules that are planned by times: micro-batches x chunks in flight on a rank.
  std::optional<std::int64_t> memory_limit{};
  std::optional<ActivationMemory> memory{};  // for those of them that count what B gives back
};

StageCosts costs_of(const ScheduleRequest& request);
std::int64_t chunks_of(const ScheduleRequest& request);  // with the schedule's default

// Every rule that the request breaks, with the nearest values that would be legal.
std::vector<Problem> check(const ScheduleRequest& request);

// Schedules that are planned by times take those of each stage (zb_auto_1p, zb_auto_2p) or, as
// their authors do, the median of all stages (zbv_auto). REQUIRES: check(request) is empty.
PipelineSchedule make_schedule(const ScheduleRequest& request);

}  // namespace stepsim
