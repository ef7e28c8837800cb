#include <string>

#include "schedules/plan/pass_exchange.h"
#include "schedules/plan/plan_rules.h"

namespace stepsim {

void check_launches(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const bool costs = plan.launches.host_launch_cost.has_value();
  const std::string free = ", but launching costs nothing: give host_launch_cost, or ";
  const ParallelPlan usual;
  rules.require(costs || plan.launches.host_queue_depth == usual.launches.host_queue_depth,
                "host_queue_depth",
                "is " + std::to_string(plan.launches.host_queue_depth) + free +
                    std::to_string(usual.launches.host_queue_depth));
  rules.require(costs || plan.launches.cuda_graphs == CudaGraphs::kNone, "cuda_graphs",
                "is " + std::string(name_of(plan.launches.cuda_graphs)) + free + "none");
  // What launches cost in a pass of inference may be said by the library.
  const bool may_cost = costs || plan.is_inference();
  rules.require(may_cost || plan.launches.host_reads_counts, "host_reads_counts",
                "is false" + free + "true");
  const bool has_experts = model.experts.routed > 0;
  rules.require(!may_cost || has_experts || plan.launches.host_reads_counts, "host_reads_counts",
                "is false, but the model has no routed experts: true");
  const bool waits = has_experts && plan.launches.host_reads_counts;
  const bool chooses =
      plan.is_inference() && (!sends_in_pass(plan.mesh) || plan.experts.dispatch == Dispatch::kAuto);
  rules.require(plan.launches.cuda_graphs != CudaGraphs::kStep || !waits || chooses, "cuda_graphs",
                "is step, but the host reads the numbers of tokens of the experts in the middle of "
                "it: none, blocks, or host_reads_counts = false");
}

}  // namespace stepsim
