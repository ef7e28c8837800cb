// make_schedule() makes any published schedule by its name; check() says beforehand what of a
// request its authors do not allow.
//
//   const ScheduleRequest request{
//       .name = *schedule_named("zb_h1"), .stages = 8, .microbatches = 32};
//   throw_if_any(check(request));
//   const PipelineSchedule schedule = make_schedule(request);
//
// `optimal`, which is searched for, and schedules from files are not in here.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/replay/stage_costs.h"
#include "schedules/pipeline/schedule_name.h"
#include "schedules/pipeline/schedule_rules.h"
#include "sim/base/error.h"

namespace stepsim {

struct ScheduleRequest {
  ScheduleName name = ScheduleName::kOneForwardOneBackward;
  std::int64_t stages = 0;  // ranks of the pipeline
  std::int64_t microbatches = 0;
  std::optional<std::int64_t> chunks{};            // a rank; not given: default_chunks()
  std::optional<std::int64_t> microbatch_group{};  // of the interleaved ones: interleaved.h
  PipelineCosts costs{};  // zb_auto_1p, zb_auto_2p and zbv_auto plan by them
  // Instead of `costs` where stages differ: one a global stage, all with the same send time.
  std::vector<PipelineCosts> stage_costs{};
  std::optional<std::int64_t> memory_limit{};  // of the same, in micro-batches x chunks
  std::optional<ActivationMemory> memory{};    // of zb_auto_1p and zb_auto_2p
};

StageCosts costs_of(const ScheduleRequest& request);

// Every rule that the request breaks, with the nearest values that would be legal.
std::vector<Problem> check(const ScheduleRequest& request);

// The planners by costs take those of each stage (zb_auto_1p, zb_auto_2p) or, as their authors do,
// the median of all stages (zbv_auto). REQUIRES: check(request) is empty.
PipelineSchedule make_schedule(const ScheduleRequest& request);

}  // namespace stepsim
