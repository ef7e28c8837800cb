// The rules of a plan, section by section: plan_rules.h says which file has which.

#include <string>
#include <utility>

#include "schedules/plan/plan_rules.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {

std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model, const Places& places) {
  Rules rules;
  check_sizes(plan, rules);
  check_batch(plan, model, rules);
  check_tensor(plan, model, rules);
  check_width(plan, model, rules);
  check_context(plan, model, rules);
  check_experts(plan, model, rules);
  check_stages(plan, model, rules);
  check_sharding(plan, rules);
  check_recompute(plan, model, rules);
  check_optimizer(plan, rules);
  check_offload(plan, rules);
  check_chips(plan, places, rules);
  check_mapping(plan, places, rules);
  if (rules.good()) check_expert_places(plan, model, places, rules);
  std::vector<Problem> problems = rules.take();
  for (Problem& problem : check_schedule(plan)) problems.push_back(std::move(problem));
  return problems;
}

std::vector<Problem> check(const ParallelPlan& plan, const ChipSpec& chip) {
  if (chip.peak_of(plan.type) > Throughput(0)) return {};
  std::string supported;
  for (int i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    if (chip.peak_of(type) > Throughput(0)) {
      supported += (supported.empty() ? "" : ", ") + std::string(name_of(type));
    }
  }
  return {{"dtype", "is " + std::string(name_of(plan.type)) + ", but " + chip.name +
                        " has a peak throughput for " + supported + " only"}};
}

}  // namespace stepsim
