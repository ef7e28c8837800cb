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

// Returns the number of chunks of the model that each rank of the pipeline holds.
std::int64_t chunks_of(const PipelinePlan& plan);

// Returns which stages a rank holds. Bidirectional: two copies of each stage.
Placement placement_of(const PipelinePlan& plan);

// Returns the number of global stages, the consecutive parts of the model.
std::int64_t stages_of(const ParallelPlan& plan);

// Returns the layers of each global stage if the model has `layers`. REQUIRES: check() accepts the
// division.
std::vector<std::int64_t> layers_of_stages(const ParallelPlan& plan, std::int64_t layers);

// Returns the rule by which messages between stages are posted in batches; nullopt without
// batch_p2p.
std::optional<PostingRule> posting_rule(const ParallelPlan& plan);

// Returns whether the order, or the places of its messages, depend on the times of the ops.
bool plans_by_cost(const ParallelPlan& plan);

// Returns whether a step overlaps with the next one, so that two have to be simulated. That holds
// for schedules whose bubble is outside the span of each rank (zb_h2, zb_auto_2p, zbv_hand,
// zbv_auto, optimal), and for post-validation.
bool overlaps_steps(const ParallelPlan& plan);

// Returns whether no op makes the gradients of inputs and of weights together.
bool splits_all_backwards(const PipelinePlan& plan);

// Returns every rule of its schedule that the plan breaks, with the nearest legal values.
// check_axis_sizes() (plan_rules.h) reports sizes that are not positive.
std::vector<Problem> check_schedule(const ParallelPlan& plan);

// Returns the order of ops. `costs` are those of a chunk, for schedules that are planned by times.
// REQUIRES: check_schedule(plan) is empty.
PipelineSchedule schedule_of(const ParallelPlan& plan, const PipelineCosts& costs);

}  // namespace stepsim
