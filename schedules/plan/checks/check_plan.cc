// Checks the rules of a plan, section by section. plan_rules.h lists the file of each.

#include "schedules/plan/inference_plan.h"
#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/plan_rules.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

void check_model(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  check_batch(plan, model, rules);
  check_tensor(plan, model, rules);
  check_width(plan, model, rules);
  check_documents(plan, model, rules);
  check_pictures(plan, model, rules);
  check_accumulation(plan, model, rules);
  check_context(plan, model, rules);
  check_experts(plan, model, rules);
  check_stages(plan, model, rules);
  check_inference(plan, model, rules);
}

void check_limits(const ParallelPlan& plan, Rules& rules) {
  rules.add(problems_of_keys(plan));
  check_axis_order(plan, rules);
}

void check_state(const ParallelPlan& plan, Rules& rules) {
  check_sharding(plan, rules);
  check_overlap_of_replicas(plan, rules);
}

void check_updates(const ParallelPlan& plan, Rules& rules) {
  check_optimizer(plan, rules);
  check_offload(plan, rules);
}

void check_places(const ParallelPlan& plan, const Places& places, Rules& rules) {
  check_chips(plan, places, rules);
  check_domains(plan, places, rules);
  check_mapping(plan, places, rules);
}

}  // namespace

std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model, const Places& places) {
  Rules rules;
  check_limits(plan, rules);
  check_model(plan, model, rules);
  check_state(plan, rules);
  check_recompute(plan, model, rules);
  check_updates(plan, rules);
  check_types(plan, model, rules);
  check_launches(plan, model, rules);
  check_adapters(plan, model, rules);
  check_places(plan, places, rules);
  if (rules.good()) check_expert_places(plan, model, places, rules);
  rules.add(check_schedule(plan));
  return rules.take();
}

std::vector<Problem> check_without_model(const ParallelPlan& plan, const Places& places) {
  Rules rules;
  check_limits(plan, rules);
  check_state(plan, rules);
  check_updates(plan, rules);
  check_places(plan, places, rules);
  rules.add(check_schedule(plan));
  return rules.take();
}

}  // namespace stepsim
