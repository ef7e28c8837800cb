// Communicators of a plan: the ranks that differ only along some axes of the mesh form a group.

#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/op_graph.h"

namespace stepsim {

// One group for each combination of the coordinates along the other axes; members are in the order
// of their coordinates along `axes`, the innermost axis of the plan's order fastest.
Communicator partition(const ParallelPlan& plan, std::string name, Axis purpose,
                       std::initializer_list<PlanAxis> axes);

// Replicas of a stage of which pipeline ranks r and pp - 1 - r hold a copy each: the dp x cp ranks
// of both, those of the lower r first.
Communicator mirrored_replicas(const ParallelPlan& plan, std::string name, Axis purpose);

// Pairs {first, last pipeline stage} of ranks that are equal otherwise; ranks of other stages
// belong to no group. REQUIRES: plan.pp >= 2.
Communicator first_and_last_stage(const ParallelPlan& plan, std::string name, Axis purpose);

}  // namespace stepsim
