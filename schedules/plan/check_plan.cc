// The rules of a plan, section by section: plan_rules.h says which file has which.

#include <utility>

#include "schedules/plan/plan_rules.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {

std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model, const Places& places) {
  Rules rules;
  check_axis_sizes(plan, rules);
  check_batch(plan, model, rules);
  check_tensor(plan, model, rules);
  check_width(plan, model, rules);
  check_context(plan, model, rules);
  check_experts(plan, model, rules);
  check_stages(plan, model, rules);
  check_sharding(plan, rules);
  check_overlap_of_replicas(plan, rules);
  check_recompute(plan, model, rules);
  check_optimizer(plan, rules);
  check_offload(plan, rules);
  check_types(plan, model, rules);
  check_chips(plan, places, rules);
  check_mapping(plan, places, rules);
  if (rules.good()) check_expert_places(plan, model, places, rules);
  std::vector<Problem> problems = rules.take();
  for (Problem& problem : check_schedule(plan)) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace stepsim
