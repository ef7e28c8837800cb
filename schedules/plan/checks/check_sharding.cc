#include <string>

#include "schedules/plan/plan_rules.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

constexpr std::int64_t kLeastPart = 1'000'000;

}  // namespace

void check_sharding(const ParallelPlan& plan, Rules& rules) {
  rules.require(plan.state.shard != 1, "shard",
                "is 1, which divides nothing: 2 and more, or 0 for all replicas");
  if (plan.state.shard) {
    rules.require(plan.state.zero >= 1, "shard",
                  "is " + std::to_string(*plan.state.shard) +
                      ", but with zero = 0 nothing is divided: zero must be 1, 2 or 3");
    rules.require(placement_of(plan.pipeline) != Placement::kBidirectional, "shard",
                  "is " + std::to_string(*plan.state.shard) +
                      " with a schedule that holds two copies of each stage: only 0");
    if (plan.mesh.cp >= 1 && plan.mesh.dp >= 1) {
      rules.divides("shard", *plan.state.shard, "replicas, cp x dp", plan.mesh.replicas());
    }
  }
  rules.require(plan.state.reshard_after_forward || plan.state.zero == 3, "reshard_after_forward",
                "is false, but only FSDP (zero = 3) gathers parameters for the forward");
  rules.require(
      !plan.buffers.save_gathered || (plan.state.zero == 3 && plan.state.reshard_after_forward),
      "save_gathered",
      "is true, but parameters are not dropped after each pass: zero = 3 and "
      "reshard_after_forward, or false");
  rules.require(
      !plan.buffers.keep_root || (plan.state.zero == 3 && plan.state.reshard_after_forward),
      "keep_root",
      "is true, but parameters are not dropped after each pass: zero = 3 and "
      "reshard_after_forward, or false");
  rules.require(!plan.buffers.fsdp_copies || plan.state.zero == 3, "fsdp_copies",
                "is true, but zero is " + std::to_string(plan.state.zero) + ": false, or zero = 3");
  rules.require(!plan.buffers.shared_master || plan.state.zero == 3, "shared_master",
                "is true, but zero is " + std::to_string(plan.state.zero) +
                    ": only FSDP (zero = 3) computes with weights that it casts while gathering");
  rules.require(!plan.buffers.shared_master || plan.update.optimizer_bytes >= 4, "optimizer_bytes",
                "is " + std::to_string(plan.update.optimizer_bytes) +
                    ", but with shared_master 4 of them are the fp32 weights: 4 or more");
  if (!plan.update.hold_gradients && plan.mesh.dp >= 1 && plan.batch.microbatch_size >= 1) {
    rules.require(plan.microbatches() == 1, "state_bytes",
                  "is 10, without a place for gradients, but they are summed over " +
                      std::to_string(plan.microbatches()) +
                      " micro-batches: 12, 16 or 18, or a single micro-batch");
  }
}

void check_overlap_of_replicas(const ParallelPlan& plan, Rules& rules) {
  const ParallelPlan usual;
  const std::string zero_is = "zero is " + std::to_string(plan.state.zero);
  rules.require(plan.state.prefetch == usual.state.prefetch || plan.state.zero == 3, "prefetch",
                "is " + std::to_string(plan.state.prefetch) + ", but " + zero_is +
                    ": only FSDP (zero = 3) gathers layers ahead; leave it out");
  rules.require(
      plan.overlap.gradients || plan.state.zero != 2, "overlap_gradients",
      "is false, but " + zero_is +
          ", which divides gradients while the backward goes on: true, or zero 0, 1 or 3");
  rules.require(!plan.overlap.parameters || plan.state.zero == 1 || plan.state.zero == 2,
                "overlap_parameters",
                "is true, but " + zero_is +
                    ": parameters are gathered after the optimizer with zero = 1 or 2 only");
  const bool cuts =
      plan.state.zero != 3 || plan.offload.optimizer;  // gradients, or state on the host
  rules.require(
      plan.messages.gradient_bucket_parameters == usual.messages.gradient_bucket_parameters || cuts,
      "gradient_bucket_parameters",
      "is " + std::to_string(plan.bucket_parameters()) +
          ", but FSDP (zero = 3) reduces layer by layer: leave it out, or zero 0, 1 or "
          "2");
  // With these plans the rank's parameters are cut into parts of this size, not into whole layers.
  rules.require(
      plan.state.zero != 3 || !plan.offload.optimizer || plan.bucket_parameters() >= kLeastPart,
      "gradient_bucket_parameters",
      "is " + std::to_string(plan.bucket_parameters()) +
          ", but with FSDP state on the host moves in parts of so many parameters: " +
          std::to_string(kLeastPart) + " or more");
}

}  // namespace stepsim
