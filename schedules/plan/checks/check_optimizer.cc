#include <string>
#include <utility>

#include "schedules/plan/plan_rules.h"

namespace stepsim {
namespace {

// Checks keys that say where and how state is held or updated.
void check_no_optimizer(const ParallelPlan& plan, Rules& rules) {
  for (const auto& [field, value] : {std::pair{"offload_optimizer", plan.offload.optimizer},
                                     std::pair{"shared_master", plan.buffers.shared_master},
                                     std::pair{"post_validation", plan.update.post_validation}}) {
    rules.require(!value, field,
                  "is true, but optimizer is none, which has no state and no step: false, or adam");
  }
  rules.require(plan.update.optimizer_bytes == ParallelPlan{}.update.optimizer_bytes,
                "optimizer_bytes",
                "is " + std::to_string(plan.update.optimizer_bytes) +
                    ", but optimizer is none, which has no state: leave it out, or adam");
}

void check_muon(const ParallelPlan& plan, Rules& rules) {
  rules.require(!plan.offload.optimizer, "offload_optimizer",
                "is true, but optimizer muon multiplies matrices on the chip: false, or adam");
  rules.require(!plan.training.lora_rank, "lora_rank",
                "is given, but optimizer muon of adapters is not modelled: leave it out, or adam");
  rules.require(plan.state.zero < 3 || plan.mesh.pp == 1, "pp",
                "is " + std::to_string(plan.mesh.pp) +
                    ", but with zero = 3 optimizer muon is modelled on one stage: 1");
  rules.require(plan.update.second_moment_bytes <= plan.update.optimizer_bytes,
                "second_moment_bytes",
                "is " + std::to_string(plan.update.second_moment_bytes) +
                    ", more than optimizer_bytes, " + std::to_string(plan.update.optimizer_bytes));
}

}  // namespace

void check_adapters(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.training.frozen_type) {
    const std::string type(name_of(*plan.training.frozen_type));
    const bool narrow = bits_of(*plan.training.frozen_type) < bits_of(plan.weights());
    rules.require(plan.training.lora_rank.has_value(), "frozen_dtype",
                  "is " + type + ", but without lora_rank nothing is frozen: leave it out");
    rules.require(!plan.training.lora_rank || narrow, "frozen_dtype",
                  "is " + type + ", but weights are " + std::string(name_of(plan.weights())) +
                      ": fp8, int8 or int4, or leave it out");
  }
  if (!plan.training.lora_rank) {
    rules.require(
        plan.training.lora_modules == ParallelPlan{}.training.lora_modules, "lora_modules",
        "is given, but without lora_rank nothing has adapters: leave it out, or lora_rank");
    return;
  }
  const std::string is = "is " + std::to_string(*plan.training.lora_rank) + ", but ";
  rules.require(model.kind == ModelKind::kTransformer, "lora_rank",
                is + "the model is a stack of MLPs, which gets no adapters: 0");
  const bool counts = plan.training.lora_modules != ParallelPlan{}.training.lora_modules &&
                      check(model).empty() && model.kind == ModelKind::kTransformer &&
                      model.prediction.modules == 0;
  rules.require(!counts || adapter_parameter_count(model, plan.adapters()) > 0, "lora_modules",
                "names projections that the model does not have, so nothing would be trained: "
                "others of qkv, out, mlp");
  rules.require(model.prediction.modules == 0, "lora_rank",
                is + "modules of multi-token prediction get no adapters: 0");
  rules.require(plan.pieces.tensor_pieces == 1, "lora_rank",
                is + "tensor_pieces = " + std::to_string(plan.pieces.tensor_pieces) +
                    " exchanges beside matmuls that have no others beside them: 0, or "
                    "tensor_pieces = 1");
  rules.require(plan.pieces.tensor_chunks == 1, "lora_rank",
                is + "tensor_chunks = " + std::to_string(plan.pieces.tensor_chunks) +
                    " cuts matmuls that have no others beside them: 0, or tensor_chunks = 1");
  rules.require(!plan.tensor.divides_width(), "lora_rank",
                is + "tensor_width = " + std::to_string(plan.tensor.tensor_width) +
                    " divides matrices both ways: 0, or tensor_width = 1");
  rules.require(!model.embedding.tied || (plan.mesh.pp == 1 && plan.state.zero < 3), "lora_rank",
                is + "the frozen table of tied embeddings would be on two stages, or gathered: 0, "
                     "or pp = 1 and zero below 3");
}

void check_accumulation(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.require(!plan.update.free_gradients || plan.update.hold_gradients, "free_gradients",
                "is true, but state_bytes = 10 holds no gradients: false, or another state_bytes");
  rules.require(!plan.update.free_gradients || !plan.update.separate_accumulation, "free_gradients",
                "is true, but separate_accumulation keeps flat buffers of gradients: false, or "
                "separate_accumulation = false");
  if (!plan.update.separate_accumulation) return;
  const auto require = [&rules](bool holds, const std::string& message) {
    rules.require(holds, "separate_accumulation", "is true, but " + message);
  };
  require(model.kind == ModelKind::kTransformer,
          "the gradients of an mlp_stack are written, not summed up: false");
  require(plan.update.gradient_bytes == 4 && plan.update.hold_gradients,
          "no fp32 sums of gradients are held: false, or gradient_bytes = 4");
  require(plan.precision.type != DataType::kFp32,
          "with dtype fp32 gradients are made in fp32: false");
  require(plan.state.zero < 2,
          "zero is " + std::to_string(plan.state.zero) +
              ", which divides gradients as they are made: false, or zero below 2");
  require(!plan.training.lora_rank, "with lora_rank the gradients are those of adapters: false");
}

void check_optimizer(const ParallelPlan& plan, Rules& rules) {
  rules.require(plan.update.optimizer_scratch_bytes == 0 ||
                    (plan.training.optimizer != Optimizer::kNone && !plan.offload.optimizer),
                "optimizer_scratch_bytes",
                "is " + std::to_string(plan.update.optimizer_scratch_bytes) +
                    ", but no optimizer updates all parameters on the chip at once: 0");
  rules.require(plan.update.clip_gradients || !plan.update.post_validation, "post_validation",
                "is true, but without clip_gradients there is no norm to wait for");
  rules.require(plan.mesh.pp != 1 || !plan.update.post_validation, "post_validation",
                "is true, but a single stage waits for no other: pp above 1, or false");
  if (plan.training.optimizer == Optimizer::kNone) check_no_optimizer(plan, rules);
  if (plan.training.optimizer == Optimizer::kMuon) check_muon(plan, rules);
}

void check_offload(const ParallelPlan& plan, Rules& rules) {
  rules.require(!plan.update.host_optimizer || plan.offload.optimizer, "host_optimizer",
                "is true, which needs offload_optimizer: the host updates what lies there");
  rules.require(!plan.offload.optimizer || !plan.buffers.shared_master, "offload_optimizer",
                "is true, but with shared_master the master weights are those of the chip");
  rules.require(!plan.offload.optimizer || !plan.offload.copy_checkpoint, "copy_checkpoint",
                "is true, but offload_optimizer keeps on the host what a checkpoint holds: false");
  rules.require(!plan.offload.layers || plan.offload.activations, "offload_layers",
                "is " + std::to_string(plan.offload.layers.value_or(0)) +
                    ", which needs offload_activations");
}

}  // namespace stepsim
