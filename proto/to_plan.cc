#include <string>

#include "proto/read_fields.h"
#include "proto/to_spec.h"
#include "schedules/plan/plan_fields.h"

namespace stepsim {
namespace {

// A part of state_bytes may be given in addition if it equals what state_bytes counts.
void check_part(bool given, std::int64_t part, std::int64_t counted, const char* field,
                const file::Plan& plan, ProblemList& problems) {
  if (!given || !plan.has_state_bytes() || part == counted) return;
  problems.add(std::string("plan.") + field,
               "is " + std::to_string(part) +
                   ", but state_bytes = " + std::to_string(plan.state_bytes()) + " counts " +
                   std::to_string(counted) + " for it: leave out one of the two");
}

}  // namespace

ParallelPlan to_plan(const file::Plan& plan, ProblemList& problems) {
  ParallelPlan spec;
  read_fields(plan, plan_fields(), spec, "plan.", problems);
  check_part(plan.has_gradient_bytes(), plan.gradient_bytes(), spec.gradient_bytes,
             "gradient_bytes", plan, problems);
  check_part(plan.has_optimizer_bytes(), plan.optimizer_bytes(), spec.optimizer_bytes,
             "optimizer_bytes", plan, problems);
  return spec;
}

}  // namespace stepsim
