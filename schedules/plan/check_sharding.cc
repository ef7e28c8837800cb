#include <string>

#include "schedules/plan/plan_rules.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

constexpr std::int64_t kLeastPart = 1'000'000;

}  // namespace

void check_sharding(const ParallelPlan& plan, Rules& rules) {
  rules.require(plan.shard != 1, "shard",
                "is 1, which divides nothing: 2 and more, or 0 for all replicas");
  if (plan.shard) {
    rules.require(plan.zero >= 1, "shard",
                  "is " + std::to_string(*plan.shard) +
                      ", but with zero = 0 nothing is divided: zero must be 1, 2 or 3");
    rules.require(placement_of(plan) != Placement::kBidirectional, "shard",
                  "is " + std::to_string(*plan.shard) +
                      " with a schedule that holds two copies of each stage: only 0");
    if (plan.cp >= 1 && plan.dp >= 1) {
      rules.divides("shard", *plan.shard, "replicas, cp x dp", plan.replicas());
    }
  }
  rules.require(plan.reshard_after_forward || plan.zero == 3, "reshard_after_forward",
                "is false, but only FSDP (zero = 3) gathers parameters for the forward");
  rules.require(!plan.save_gathered || (plan.zero == 3 && plan.reshard_after_forward),
                "save_gathered",
                "is true, but parameters are not dropped after each pass: zero = 3 and "
                "reshard_after_forward, or false");
  rules.require(!plan.keep_root || (plan.zero == 3 && plan.reshard_after_forward), "keep_root",
                "is true, but parameters are not dropped after each pass: zero = 3 and "
                "reshard_after_forward, or false");
  rules.require(!plan.fsdp_copies || plan.zero == 3, "fsdp_copies",
                "is true, but zero is " + std::to_string(plan.zero) + ": false, or zero = 3");
  rules.require(!plan.shared_master || plan.zero == 3, "shared_master",
                "is true, but zero is " + std::to_string(plan.zero) +
                    ": only FSDP (zero = 3) computes with weights that it casts while gathering");
  rules.require(!plan.shared_master || plan.optimizer_bytes >= 4, "optimizer_bytes",
                "is " + std::to_string(plan.optimizer_bytes) +
                    ", but with shared_master 4 of them are the fp32 weights: 4 or more");
  if (!plan.hold_gradients && plan.dp >= 1 && plan.microbatch_size >= 1) {
    rules.require(plan.microbatches() == 1, "state_bytes",
                  "is 10, without a place for gradients, but they are summed over " +
                      std::to_string(plan.microbatches()) +
                      " micro-batches: 12, 16 or 18, or a single micro-batch");
  }
}

void check_overlap_of_replicas(const ParallelPlan& plan, Rules& rules) {
  const ParallelPlan usual;
  const std::string zero_is = "zero is " + std::to_string(plan.zero);
  rules.require(plan.prefetch == usual.prefetch || plan.zero == 3, "prefetch",
                "is " + std::to_string(plan.prefetch) + ", but " + zero_is +
                    ": only FSDP (zero = 3) gathers layers ahead; leave it out");
  rules.require(
      plan.overlap_gradients || plan.zero != 2, "overlap_gradients",
      "is false, but " + zero_is +
          ", which divides gradients while the backward goes on: true, or zero 0, 1 or 3");
  rules.require(!plan.overlap_parameters || plan.zero == 1 || plan.zero == 2, "overlap_parameters",
                "is true, but " + zero_is +
                    ": parameters are gathered after the optimizer with zero = 1 or 2 only");
  const bool cuts = plan.zero != 3 || plan.offload_optimizer;  // gradients, or state on the host
  rules.require(plan.gradient_bucket_parameters == usual.gradient_bucket_parameters || cuts,
                "gradient_bucket_parameters",
                "is " + std::to_string(plan.bucket_parameters()) +
                    ", but FSDP (zero = 3) reduces layer by layer: leave it out, or zero 0, 1 or "
                    "2");
  // With these plans the rank's parameters are cut into parts of this size, not into whole layers.
  rules.require(plan.zero != 3 || !plan.offload_optimizer || plan.bucket_parameters() >= kLeastPart,
                "gradient_bucket_parameters",
                "is " + std::to_string(plan.bucket_parameters()) +
                    ", but with FSDP state on the host moves in parts of so many parameters: " +
                    std::to_string(kLeastPart) + " or more");
}

}  // namespace stepsim
