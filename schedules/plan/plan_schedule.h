// The pipeline schedule of a plan: a published one by its name, one that is searched for, or one
// from a file.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/posting.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/base/error.h"

namespace stepsim {

// Chunks of the model that each rank of the pipeline holds.
std::int64_t chunks_of(const ParallelPlan& plan);

// Which stages a rank holds. Bidirectional: two copies of each stage.
Placement placement_of(const ParallelPlan& plan);

// Global stages: parts of the model that follow each other.
std::int64_t stages_of(const ParallelPlan& plan);

// Layers of a global stage of a model with so many. REQUIRES: they are divided as check() asks.
std::int64_t layers_of(const ParallelPlan& plan, std::int64_t stage, std::int64_t layers);

// The rule by which messages between stages are posted in batches. Unset without batch_p2p.
std::optional<PostingRule> posting_rule(const ParallelPlan& plan);

// Whether the order, or the places of its messages, depend on how long the ops take.
bool plans_by_cost(const ParallelPlan& plan);

// Whether a step overlaps with the next one, so that two have to be simulated: schedules whose
// bubble is outside the span of each rank (zb_h2, zb_auto_2p, zbv_hand, zbv_auto, optimal), and
// post-validation.
bool overlaps_steps(const ParallelPlan& plan);

// Whether no rank makes the gradients of inputs and of weights in one op.
bool splits_all_backwards(const ParallelPlan& plan);

// Every rule of its schedule that the plan breaks, with the nearest legal values. Sizes that are
// not positive are reported by check_axis_sizes() (plan_rules.h).
std::vector<Problem> check_schedule(const ParallelPlan& plan);

// The order of ops. `costs` are those of a chunk, for schedules that are planned by times.
// REQUIRES: check_schedule(plan) is empty.
PipelineSchedule schedule_of(const ParallelPlan& plan, const PipelineCosts& costs);

}  // namespace stepsim
