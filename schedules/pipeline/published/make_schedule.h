// make_schedule() makes any published schedule by its name. Call check() first: it returns the
// rules of the schedule's authors that a request breaks.
//
//   const ScheduleRequest request{
//       .name = *schedule_named("zb_h1"), .stages = 8, .microbatches = 32};
//   throw_if_any(check(request));
//   const PipelineSchedule schedule = make_schedule(request);
//
// `optimal` is not made here but searched for (search/optimal_schedule.h). Schedules from files are
// read by schedule_file.h.

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

// The longest time that all ops of a schedule may take, one after another. In picoseconds it
// is 53.4 days.
inline constexpr std::int64_t kMostTime = std::int64_t{1} << 62;

struct ScheduleRequest {
  ScheduleName name = ScheduleName::kOneForwardOneBackward;
  std::int64_t stages = 0;  // ranks of the pipeline
  std::int64_t microbatches = 0;
  std::optional<std::int64_t> chunks{};            // per rank; unset: the schedule's default
  std::optional<std::int64_t> microbatch_group{};  // only for schedules with groups: interleaved.h
  PipelineCosts costs{};  // used by schedules planned by time, and by formulas
  // Replaces `costs` if stages differ: one entry per global stage, all with the same send time.
  std::vector<PipelineCosts> stage_costs{};
  // Only for schedules planned by time: most micro-batches x chunks in flight on a rank.
  std::optional<std::int64_t> memory_limit{};
  std::optional<ActivationMemory> memory{};  // only for those of them that count what B releases
};

StageCosts costs_of(const ScheduleRequest& request);
std::int64_t chunks_of(const ScheduleRequest& request);  // the schedule's default if unset

// Returns every rule that the request breaks, with the nearest legal values.
std::vector<Problem> check(const ScheduleRequest& request);

// Schedules planned by time use the times of each stage (zb_auto_1p, zb_auto_2p) or, as their
// authors do, the median of all stages (zbv_auto). REQUIRES: check(request) is empty.
PipelineSchedule make_schedule(const ScheduleRequest& request);

}  // namespace stepsim
