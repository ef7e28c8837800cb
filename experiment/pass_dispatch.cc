#include "experiment/pass_dispatch.h"

#include <algorithm>

#include "schedules/plan/expert_places.h"
#include "schedules/plan/inference_plan.h"

namespace stepsim {

namespace {

bool spans_nodes(const ParallelPlan& plan, const Places& places) {
  return ranks_of_expert_node(plan, places) < plan.ep;
}

}  // namespace

Dispatch dispatch_with_prompts(const ParallelPlan& plan, const CommunicationLibrary& library,
                               const Places& places) {
  const bool own_kernels = library.bulk_dispatch && library.bulk_combine;
  return own_kernels && !spans_nodes(plan, places) ? Dispatch::kAllToAll : Dispatch::kTwoLevel;
}

Dispatch dispatch_of_pass(const ParallelPlan& plan, const CommunicationLibrary& library,
                          const Places& places) {
  if (plan.dispatch != Dispatch::kAuto) return plan.dispatch;
  const bool over_nodes = spans_nodes(plan, places);
  const Dispatch normal = dispatch_with_prompts(plan, library, places);
  const RequestBatch batch = requests_of(plan);
  if (!std::ranges::all_of(batch.groups, &RequestGroup::generates)) return normal;
  for (const auto* const kernel : {&library.dispatch, &library.combine}) {
    if (!*kernel || (over_nodes && (*kernel)->network_fraction == 0)) return normal;
    const std::int64_t most = (*kernel)->up_to_tokens;  // 0: any number
    if (most > 0 && batch.tokens() > most) return normal;
  }
  return Dispatch::kAllToAll;
}

bool chooses_dispatch_by_pass(const ParallelPlan& plan, const CommunicationLibrary& library) {
  return plan.is_inference() && plan.ep > 1 && plan.tp == 1 && library.dispatch && library.combine;
}

}  // namespace stepsim
