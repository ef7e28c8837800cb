// Whether the tokens of a pass travel to experts that other chips have.

#pragma once

#include "schedules/plan/parallel_plan.h"

namespace stepsim {

// Experts are divided over tensor groups of several data-parallel ranks.
inline bool spans_groups(const ParallelPlan& plan) {
  return plan.is_inference() && !plan.splits_ffn() && plan.mesh.tp > 1 &&
         plan.mesh.ep * plan.mesh.etp > plan.mesh.tp;
}

inline bool sends_in_pass(const ParallelPlan& plan) {
  return plan.is_inference() && !plan.splits_ffn() && plan.mesh.ep > 1 &&
         (plan.mesh.tp == 1 || spans_groups(plan));
}

}  // namespace stepsim
