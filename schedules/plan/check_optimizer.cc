#include <string>

#include "schedules/plan/plan_rules.h"

namespace stepsim {

void check_optimizer(const ParallelPlan& plan, Rules& rules) {
  rules.at_least("optimizer_bytes", 1, plan.optimizer_bytes);
  rules.require(plan.clip_gradients || !plan.post_validation, "post_validation",
                "is true, but without clip_gradients there is no norm to wait for");
}

void check_offload(const ParallelPlan& plan, Rules& rules) {
  rules.require(!plan.host_optimizer || plan.offload_optimizer, "host_optimizer",
                "is true, which needs offload_optimizer: the host updates what lies there");
  rules.require(!plan.offload_optimizer || !plan.shared_master, "offload_optimizer",
                "is true, but with shared_master the master weights are those of the chip");
  rules.at_least("offload_layers", 0, plan.offload_layers);
  rules.require(plan.offload_layers == 0 || plan.offload_activations, "offload_layers",
                "is " + std::to_string(plan.offload_layers) + ", which needs offload_activations");
}

}  // namespace stepsim
