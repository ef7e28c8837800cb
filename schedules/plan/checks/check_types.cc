#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "schedules/plan/plan_rules.h"

namespace stepsim {
namespace {

// Returns whether values of the type get their scales from the plan.
bool takes_scales(DataType type) {
  return size_of(type) == Bytes(1) && !block_scales_of(type);
}

// Formats with scales of their own are made by rounding for a matmul. Other values have a type that
// stands by itself.
void check_stands_alone(const char* field, std::optional<DataType> given, Rules& rules) {
  rules.require(!given || !block_scales_of(*given), field,
                "is " + std::string(name_of(given.value_or(DataType::kBf16))) +
                    ", a format for dtype alone: fp8 or wider");
}

void check_formats_with_scales(const ParallelPlan& plan, Rules& rules) {
  if (!plan.is_inference()) check_stands_alone("weight_dtype", plan.precision.weight_type, rules);
  check_stands_alone("activation_dtype", plan.precision.activation_type, rules);
  check_stands_alone("communication_dtype", plan.precision.communication_type, rules);
  check_stands_alone("dispatch_dtype", plan.precision.dispatch_type, rules);
  check_stands_alone("combine_dtype", plan.precision.combine_type, rules);
  check_stands_alone("activation_input_dtype", plan.narrow.activation_input_type, rules);
}

void check_scales(const ParallelPlan& plan, std::span<const DataType> types, Rules& rules) {
  rules.require(
      !plan.narrow.scale_block || std::ranges::any_of(types, takes_scales), "scale_block",
      "is " + std::to_string(plan.narrow.scale_block.value_or(0)) +
          ", but no values have one byte and scales of the plan: 0, or dtype fp8 or int8");
  rules.require(!plan.narrow.scale_rows || takes_scales(plan.precision.type), "scale_rows",
                "is true, but dtype is " + std::string(name_of(plan.precision.type)) +
                    ": false, or dtype fp8 or int8");
  rules.require(!plan.narrow.scale_rows || !plan.narrow.scale_block, "scale_rows",
                "is true with scale_block " + std::to_string(plan.narrow.scale_block.value_or(0)) +
                    ": one of the two");
}

// Reports a type that is given and differs from the default although nothing uses it.
void check_unused(const char* field, std::optional<DataType> given, DataType usual, bool used,
                  const std::string& why, Rules& rules) {
  rules.require(
      !given || *given == usual || used, field,
      "is " + std::string(name_of(given.value_or(usual))) + ", but " + why + ": leave it out");
}

// Checks keys of features that a stack of MLPs does not have.
void check_of_decoders(const ParallelPlan& plan, Rules& rules) {
  const std::string none = ", but the model is an mlp_stack, which has no ";
  rules.require(plan.kernels.fused_attention, "fused_attention",
                "is false" + none + "attention: true");
  rules.require(!plan.kernels.attention_library, "attention_library",
                "is given" + none + "attention: leave it out");
  rules.require(plan.loss.kernels == LossKernels::kFused, "loss",
                "is " + std::string(name_of(plan.loss.kernels)) + none + "loss: leave it out");
  rules.require(plan.loss.metric_losses == 0, "metric_losses",
                "is " + std::to_string(plan.loss.metric_losses) + none + "loss: 0");
  rules.require(!plan.narrow.activation_input_type, "activation_input_dtype",
                "is given" + none + "activation functions: leave it out");
  rules.require(!plan.narrow.scale_block, "scale_block",
                "is " + std::to_string(plan.narrow.scale_block.value_or(0)) + none + "scales: 0");
  rules.require(!plan.narrow.scale_rows, "scale_rows", "is true" + none + "scales: false");
  rules.require(!plan.narrow.attention_result_bits, "attention_result_bits",
                "is " + std::to_string(plan.narrow.attention_result_bits.value_or(0)) + none +
                    "attention: 0");
  rules.require(!plan.narrow.transpose_weights, "transpose_weights",
                "is true" + none + "kernels beside its matmuls: false");
  rules.require(plan.recomputing.kind == Recompute::kNone ||
                    plan.recomputing.kind == Recompute::kSelective ||
                    plan.recomputing.kind == Recompute::kFull,
                "recompute",
                "is " + std::string(name_of(plan.recomputing.kind)) + none +
                    "kernels beside its matmuls: none, selective or full");
}

// Checks the keys for matmuls in a narrower type than the activations, and for results that are
// kept in a narrower type.
void check_rounding(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const DataType wide = plan.precision.activations();
  const bool narrows = bits_of(plan.precision.type) < bits_of(wide);
  rules.require(!plan.narrow.transpose_weights || narrows, "transpose_weights",
                "is true, but matmuls read " + std::string(name_of(plan.precision.type)) +
                    " either way round: false, or dtype fp8");
  const bool keeps_narrow = plan.narrow.activation_input_type &&
                            size_of(*plan.narrow.activation_input_type) < size_of(wide);
  const bool acts = (narrows && plan.narrow.scales_rows(plan.precision.type)) || keeps_narrow ||
                    model.experts.routed > 0;
  rules.require(plan.kernels.fused_elementwise || acts, "fused_elementwise",
                "is false, but nothing is rounded by blocks or kept narrow, and there are no "
                "experts: true");
  const bool has_passes =
      model.kind == ModelKind::kTransformer &&
      (model.norms.kind == NormKind::kRms || model.mlp.gated || model.attention.rotary);
  rules.require(!plan.loss.hold_logits || has_fp32_copy(plan.loss.kernels), "hold_logits",
                "is true, but loss is " + std::string(name_of(plan.loss.kernels)) +
                    ", which has no fp32 copy of the logits: false, or separate or in_place");
  rules.require(!plan.kernels.eager_elementwise || has_passes, "eager_elementwise",
                "is true, but the model has no RMS norm, rotation or gated MLP: false");
  rules.require(!plan.kernels.eager_gate || (model.mlp.gated && !plan.kernels.eager_elementwise),
                "eager_gate",
                "is true, but the model has no gated MLP, or eager_elementwise is true: false");
  if (!plan.narrow.attention_result_bits) return;
  const std::int64_t bits = *plan.narrow.attention_result_bits;
  const std::int64_t most = 8 * size_of(wide).value();
  const std::string is = "is " + std::to_string(bits);
  rules.require(bits < most, "attention_result_bits",
                is + ", but activations are " + std::string(name_of(wide)) + ": 1 to " +
                    std::to_string(most - 1) + ", or 0 to keep them as they are");
  rules.require(plan.kernels.fused_attention, "attention_result_bits",
                is + ", but with fused_attention = false kernels read the results unrounded: 0, or "
                     "fused_attention = true");
  rules.require(plan.mesh.cp <= 1, "attention_result_bits",
                is + " with cp = " + std::to_string(plan.mesh.cp) +
                    ", whose chunks are merged into the result: 0, or cp = 1");
}

void check_attention(const ParallelPlan& plan, Rules& rules) {
  if (!plan.kernels.attention_library) return;
  const std::string is = "is " + std::string(name_of(*plan.kernels.attention_library));
  rules.require(plan.kernels.fused_attention, "attention_library",
                is + ", but fused_attention = false has no kernel of attention: leave it out, or "
                     "fused_attention = true");
  rules.require(!plan.is_inference(), "attention_library",
                is + ", but inference has the kernels of a serving library: leave it out");
}

void check_margin(const ParallelPlan& plan, const ChipSpec& chip, Rules& rules) {
  const std::int64_t units = chip.communication.units;
  const std::string is = "is " + std::to_string(plan.kernels.sm_margin);
  rules.require(plan.kernels.sm_margin == 0 || units > 0, "sm_margin",
                is + ", but on " + chip.name +
                    " communication takes no units that kernels could leave to it: 0");
  rules.require(units == 0 || plan.kernels.sm_margin < units, "sm_margin",
                is + " of the " + std::to_string(units) + " units of " + chip.name + ": at most " +
                    std::to_string(units - 1));
}

// `is`: what of the field's value computes in `wanted`.
void check_type(const char* field, const std::string& is, DataType wanted, const ChipSpec& chip,
                Rules& rules) {
  if (chip.peak_of(wanted) > Throughput(0)) return;
  std::string supported;
  for (int i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    if (chip.peak_of(type) > Throughput(0)) {
      supported += (supported.empty() ? "" : ", ") + std::string(name_of(type));
    }
  }
  rules.require(false, field,
                is + ", but " + chip.name + " has a peak throughput for " + supported + " only");
}

}  // namespace

void check_types(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const bool sends_tokens = model.experts.routed > 0 && plan.mesh.ep * plan.mesh.etp != 1;
  const DataType activations = plan.precision.activations();
  // Tokens are ordered by expert in the type in which they are sent, even if none are sent.
  const bool dispatches = model.experts.routed > 0 && !plan.precision.dispatch_type;
  check_unused("communication_dtype", plan.precision.communication_type, activations,
               plan.mesh.tp != 1 || plan.mesh.cp != 1 || dispatches,
               "with tp = 1 and cp = 1 nothing is sent in this type (messages of the pipeline have "
               "the activations' type)",
               rules);
  if (model.experts.routed > 0) {
    check_unused("combine_dtype", plan.precision.combine_type, activations, sends_tokens,
                 "with ep = 1 no results travel", rules);
  }
  check_attention(plan, rules);
  const std::optional<DataType> kept = plan.narrow.activation_input_type;
  rules.require(!kept || size_of(*kept) <= size_of(activations), "activation_input_dtype",
                "is " + std::string(name_of(kept.value_or(activations))) +
                    ", but activations are " + std::string(name_of(activations)) +
                    ": the same, or a narrower type");
  check_rounding(plan, model, rules);
  if (model.kind == ModelKind::kMlpStack) check_of_decoders(plan, rules);
  const DataType types[] = {plan.precision.type,
                            plan.weights(),
                            activations,
                            plan.precision.communicated(),
                            plan.precision.dispatched(),
                            plan.precision.combined(),
                            kept.value_or(activations)};
  check_scales(plan, types, rules);
  check_formats_with_scales(plan, rules);
}

std::vector<Problem> check(const ParallelPlan& plan, const ChipSpec& chip) {
  Rules rules;
  const DataType type = plan.precision.type;
  const auto is = [](DataType of) { return "is " + std::string(name_of(of)); };
  check_type("dtype", is(type), type, chip, rules);
  const DataType wide = Precision::wide(type);
  if (wide != type) {
    check_type("dtype",
               is(type) + ", and attention and logits compute in " + std::string(name_of(wide)),
               wide, chip, rules);
  }
  if (const auto experts = plan.pass.expert_type) {
    check_type("expert_dtype", is(*experts), *experts, chip, rules);
  }
  if (plan.training.optimizer == Optimizer::kMuon && !plan.is_inference()) {
    check_type("optimizer", "is muon, whose Newton-Schulz steps compute in bf16", DataType::kBf16,
               chip, rules);
  }
  check_margin(plan, chip, rules);
  return rules.take();
}

}  // namespace stepsim
