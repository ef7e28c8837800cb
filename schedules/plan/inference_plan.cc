#include "schedules/plan/inference_plan.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "schedules/plan/pass_exchange.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

// Keys that say nothing about a plan of training.
void check_training(const ParallelPlan& plan, Rules& rules) {
  const std::string but = ", but the plan is of training: leave it out, or give inference";
  for (const auto& [field, value] : {std::pair{"context", plan.pass.context},
                                     std::pair{"prefill_tokens", plan.pass.prefill_tokens},
                                     std::pair{"prefill_context", plan.pass.prefill_context},
                                     std::pair{"ffn_chips", plan.mesh.expert_chips}}) {
    rules.require(value == 0, field, "is " + std::to_string(value) + but);
  }
  rules.require(
      !plan.pass.expert_weight_type, "expert_weight_dtype",
      "is " +
          std::string(plan.pass.expert_weight_type ? name_of(*plan.pass.expert_weight_type) : "") +
          but);
  rules.require(
      !plan.pass.expert_type, "expert_dtype",
      "is " + std::string(plan.pass.expert_type ? name_of(*plan.pass.expert_type) : "") + but);
  rules.require(plan.pass.expert_spread == 1, "expert_spread", "is not 1" + but);
  rules.require(plan.cache.split == CacheSplit::kHeads, "cache_split", "is requests" + but);
  rules.require(plan.experts.dispatch != Dispatch::kAuto, "dispatch",
                "is auto, but the plan is of training: all_to_all or two_level");
  rules.require(!plan.cache.type, "cache_dtype",
                "is " + std::string(plan.cache.type ? name_of(*plan.cache.type) : "") + but);
}

// Keys that a pass without a backward can't have.
void check_training_keys(const ParallelPlan& plan, Rules& rules) {
  const auto refuse = [&rules](bool given, const char* field, const std::string& accepted) {
    rules.require(!given, field, "says how to train, but the plan is of inference: " + accepted);
  };
  refuse(plan.state.zero != 0, "zero", "0");
  refuse(plan.recomputing.kind != Recompute::kNone, "recompute", "none");
  refuse(plan.training.lora_rank.has_value(), "lora_rank", "leave it out");
  refuse(plan.update.separate_accumulation, "separate_accumulation", "false");
  refuse(plan.update.free_gradients, "free_gradients", "false");
  refuse(plan.pipeline.own_schedule || plan.pipeline.optimal_schedule ||
             plan.pipeline.schedule != ScheduleName::kOneForwardOneBackward ||
             chunks_of(plan.pipeline) > 1,
         "schedule", "leave schedule and chunks out; a pass goes through the stages once");
  refuse(plan.messages.batch_p2p, "batch_p2p", "false");
  refuse(plan.offload.copy_checkpoint, "copy_checkpoint", "false");
  refuse(plan.offload.optimizer || plan.offload.activations, "offload_optimizer", "no offload");
  refuse(plan.overlap.expert_parallel, "overlap_expert_parallel", "false");
  refuse(plan.update.clip_gradients, "clip_gradients", "false");
}

void check_unsupported(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const auto refuse = [&rules](bool given, const char* field, const std::string& message) {
    rules.require(!given, field, message);
  };
  refuse(plan.mesh.cp > 1 && plan.pass.inference == Inference::kDecode, "cp",
         "is " + std::to_string(plan.mesh.cp) +
             ", but requests that generate are not divided over context ranks: 1, or prefill");
  refuse(plan.mesh.cp > 1 && plan.tensor.cp_mode == ContextMode::kUlysses, "cp_mode",
         "is " + std::string(name_of(plan.tensor.cp_mode)) +
             ", but in inference context ranks gather keys and values or pass them round: "
             "all_gather, zigzag_ring or ring");
  refuse(plan.tensor.divides_width() && plan.mesh.cp > 1, "tensor_width",
         "with context ranks is not modelled in inference: 1");
  refuse(plan.pieces.tensor_chunks > 1, "tensor_chunks", "is not modelled in inference: 1");
  refuse(plan.pieces.tensor_pieces > 1, "tensor_pieces", "is not modelled in inference: 1");
  refuse(plan.kernels.mask_dispatch, "mask_dispatch",
         "is true, which is not modelled in inference: false");
  refuse(model.kind != ModelKind::kTransformer, "inference",
         "needs a transformer; the model is an mlp_stack");
}

void check_experts_of_group(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (model.experts.routed == 0 || plan.mesh.tp <= 1 || plan.mesh.splits_ffn()) return;
  const std::int64_t parts = plan.mesh.ep * plan.mesh.etp;
  const std::int64_t all = plan.mesh.tp * plan.mesh.dp;
  rules.require(parts == plan.mesh.tp || (parts > plan.mesh.tp && all % parts == 0), "ep",
                "x etp is " + std::to_string(plan.mesh.ep) + " x " + std::to_string(plan.mesh.etp) +
                    ", but experts are divided over a tensor group or several: ep x etp = tp = " +
                    std::to_string(plan.mesh.tp) +
                    ", or a multiple that divides tp x dp = " + std::to_string(all));
}

bool has(const ModelSpec& model, Mixer mixer) {
  return std::ranges::any_of(kinds_of(model),
                             [mixer](const BlockKind& kind) { return kind.mixer == mixer; });
}

bool looks_ahead(const ModelSpec& model) {
  return !model.attention.causal || has(model, Mixer::kTwoSided);
}

void check_expert_keys(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (model.experts.routed > 0) return;
  const auto refuse = [&rules](bool given, const char* field, const std::string& value) {
    rules.require(!given, field,
                  "is " + value + ", but the model has no routed experts: leave it out");
  };
  const auto text = [](const std::optional<DataType>& type) {
    return std::string(type ? name_of(*type) : "");
  };
  refuse(plan.pass.expert_weight_type.has_value(), "expert_weight_dtype",
         text(plan.pass.expert_weight_type));
  refuse(plan.pass.expert_type.has_value(), "expert_dtype", text(plan.pass.expert_type));
  refuse(plan.pass.expert_spread != 1, "expert_spread", "not 1");
}

void check_cache_split(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.cache.split == CacheSplit::kHeads) return;
  rules.require(plan.mesh.tp > 1, "cache_split",
                "is requests, but tp is 1, so there is nothing to divide: heads");
  const bool keeps_more =
      has(model, Mixer::kSparse) || model.compressed.output_groups > 0 ||
      std::ranges::any_of(kinds_of(model), [](const BlockKind& kind) { return kind.has_state(); });
  rules.require(!keeps_more, "cache_split",
                "is requests, which is not modelled for states and indexers: heads");
}

// Checks experts on chips of their own.
void check_split(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (!plan.mesh.splits_ffn()) return;
  constexpr std::int64_t kMostSplitRanks = 4096;  // pairs of them are listed
  const ExpertSpec& experts = model.experts;
  const std::string chips = std::to_string(plan.mesh.expert_chips);
  const std::string with = ", but ffn_chips is " + chips + ": ";
  rules.require(experts.routed > 0, "ffn_chips",
                "is " + chips + ", but the model has no routed experts to put there: 0");
  rules.require(experts.routed == 0 || plan.mesh.ep * plan.mesh.etp == plan.mesh.expert_chips, "ep",
                "x etp is " + std::to_string(plan.mesh.ep) + " x " + std::to_string(plan.mesh.etp) +
                    with + "ep x etp = " + chips + " with ep a divisor of the " +
                    std::to_string(experts.routed) + " experts and etp one of their width, " +
                    std::to_string(experts.intermediate));
  rules.require(plan.mesh.ranks() <= kMostSplitRanks, "ffn_chips",
                "is " + chips + ", which makes " + std::to_string(plan.mesh.ranks()) +
                    " ranks; a pass with experts on chips of their own has at most " +
                    std::to_string(kMostSplitRanks));
  const auto refuse = [&](bool given, const char* field, const std::string& is,
                          const std::string& accepted) {
    rules.require(!given, field, is + with + accepted);
  };
  refuse(plan.mesh.pp > 1, "pp", "is " + std::to_string(plan.mesh.pp), "1");
  refuse(plan.mesh.cp > 1, "cp", "is " + std::to_string(plan.mesh.cp), "1");
  refuse(!plan.mesh.map.empty(), "map", "says where ranks of the mesh lie", "leave it out");
  refuse(plan.experts.dispatch != Dispatch::kAllToAll, "dispatch",
         "is " + std::string(name_of(plan.experts.dispatch)), "all_to_all");
  refuse(plan.cache.split != CacheSplit::kHeads, "cache_split", "is requests", "heads");
  refuse(plan.pieces.overlap_shared_experts, "overlap_shared_experts", "is true",
         "false; shared experts run while routed ones do anyway");
  refuse(plan.launches.delay_ops(), "host_launch_cost", "is given",
         "leave it out, or cuda_graphs=step");
  refuse(plan.mesh.tp > 1 && !plan.tensor.sequence_parallel, "sequence_parallel", "is false",
         "each tensor rank sends its own tokens there: true");
  refuse(!experts.load.empty() || experts.capacity_factor > 0, "ffn_chips",
         "is given and the model's experts are loaded unevenly or have a capacity",
         "0, or an even load");
}

void check_prompt_parts(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.mesh.cp <= 1) return;
  const bool passes_on =
      has(model, Mixer::kSparse) || model.compressed.output_groups > 0 ||
      std::ranges::any_of(kinds_of(model), [](const BlockKind& kind) { return kind.has_state(); });
  rules.require(!passes_on, "cp",
                "is " + std::to_string(plan.mesh.cp) +
                    ", which is not modelled in inference for states and indexers: 1");
}

void check_requests(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const bool decodes = plan.pass.inference == Inference::kDecode;
  rules.require(!decodes || plan.pass.context > 0, "context",
                "must be given for decode: the tokens of a request that attention reads");
  rules.require(plan.pass.context == 0 || plan.pass.context >= plan.batch.sequence, "context",
                "is " + std::to_string(plan.pass.context) + ", less than the " +
                    std::to_string(plan.batch.sequence) +
                    " new tokens of a request (sequence), which it includes");
  rules.require(decodes || plan.pass.prefill_tokens == 0, "prefill_tokens",
                "is " + std::to_string(plan.pass.prefill_tokens) +
                    ", a part of a prompt beside requests that generate: needs inference=decode");
  rules.require(
      plan.pass.prefill_context == 0 || plan.pass.prefill_context >= plan.pass.prefill_tokens,
      "prefill_context",
      "is " + std::to_string(plan.pass.prefill_context) + ", less than the " +
          std::to_string(plan.pass.prefill_tokens) +
          " tokens of prefill_tokens, which it includes");
  rules.require(
      plan.pass.prefill_context == 0 || plan.pass.prefill_tokens > 0, "prefill_context",
      "is " + std::to_string(plan.pass.prefill_context) + ", but there are no prefill_tokens");
  const bool has_positions = model.embedding.learned_positions > 0;
  rules.require(!has_positions || std::max(plan.pass.context, plan.pass.prefill_context) <=
                                      model.embedding.learned_positions,
                "context",
                "is " + std::to_string(plan.pass.context) + " tokens, but the model has " +
                    std::to_string(model.embedding.learned_positions) + " learned positions");
  if (!check(model).empty() || model.kind != ModelKind::kTransformer) return;
  check_cache_split(plan, model, rules);
  check_prompt_parts(plan, model, rules);
  if (has(model, Mixer::kCross)) {
    rules.require(false, "inference",
                  "is not modelled for an encoder with a decoder: none, or another model");
    return;
  }
  rules.require(!decodes || !looks_ahead(model), "inference",
                "is decode, but tokens of this model see those behind them: prefill");
  rules.require(!looks_ahead(model) || plan.pass.context <= plan.batch.sequence, "context",
                "is " + std::to_string(plan.pass.context) +
                    ", but tokens of this model see those behind them, so nothing can lie in a "
                    "cache: leave it out");
}

}  // namespace

void complete_inference(const ModelSpec& model, ParallelPlan& plan) {
  if (!plan.is_inference()) return;
  if (plan.batch.sequence == 0 && plan.pass.inference == Inference::kDecode)
    plan.batch.sequence = 1;
  if (plan.pass.inference == Inference::kPrefill && plan.pass.context == 0)
    plan.pass.context = plan.batch.sequence;
  if (plan.pass.prefill_context == 0) plan.pass.prefill_context = plan.pass.prefill_tokens;
  if (plan.mesh.dp >= 1 && plan.batch.global_batch >= 1 &&
      plan.batch.global_batch % plan.mesh.dp == 0) {
    plan.batch.microbatch_size = plan.batch.global_batch / plan.mesh.dp;
  }
  const bool has_experts = model.experts.routed > 0;
  // Each tensor rank sends its own part of the tokens.
  if (has_experts && spans_groups(plan.mesh)) plan.tensor.sequence_parallel = true;
  if (plan.mesh.splits_ffn()) {
    if (!has_experts || plan.mesh.ep != 1 || plan.mesh.etp != 1) return;
    const std::int64_t groups = std::gcd(plan.mesh.expert_chips, model.experts.routed);
    if (model.experts.intermediate % (plan.mesh.expert_chips / groups) != 0)
      return;  // check_split()
    plan.mesh.ep = groups;
    plan.mesh.etp = plan.mesh.expert_chips / groups;
    return;
  }
  if (has_experts && plan.mesh.tp > 1 && plan.mesh.ep == 1 && plan.mesh.etp == 1)
    plan.mesh.etp = plan.mesh.tp;
}

RequestBatch requests_of(const ParallelPlan& plan) {
  assert(plan.is_inference());
  if (plan.pass.own_requests) return *plan.pass.own_requests;
  RequestBatch batch{.cache = plan.cached()};
  batch.groups.push_back({.sequences = plan.batch.microbatch_size,
                          .queries = plan.batch.sequence,
                          .cached = plan.pass.context - plan.batch.sequence,
                          .generates = plan.pass.inference == Inference::kDecode});
  if (plan.pass.prefill_tokens > 0) {
    batch.groups.push_back({.queries = plan.pass.prefill_tokens,
                            .cached = plan.pass.prefill_context - plan.pass.prefill_tokens});
  }
  return batch;
}

std::vector<RequestBatch> microbatches_of(const RequestBatch& batch, std::int64_t parts) {
  const std::int64_t count = std::clamp<std::int64_t>(batch.tokens(), 1, parts);
  std::vector<RequestBatch> result;
  for (std::int64_t i = 0; i < count; ++i) {
    RequestBatch part{.groups = {}, .cache = batch.cache};
    for (std::size_t g = 0; g < batch.groups.size(); ++g) {
      const RequestGroup& group = batch.groups[g];
      const bool by_tokens = !group.generates && group.sequences % count != 0;
      const std::int64_t whole = by_tokens ? group.queries : group.sequences;
      // What does not divide goes to the last parts of one group and the first of the next.
      const std::int64_t round = g % 2 == 0 ? 0 : count - 1;
      const std::int64_t begin = (whole * i + round) / count;
      const std::int64_t size = (whole * (i + 1) + round) / count - begin;
      if (size == 0) continue;
      RequestGroup own = group;
      (by_tokens ? own.queries : own.sequences) = size;
      if (by_tokens) own.cached += begin;
      part.groups.push_back(own);
    }
    if (!part.groups.empty()) result.push_back(std::move(part));
  }
  return result;
}

std::int64_t count_of_microbatches(const ParallelPlan& plan) {
  if (!plan.mesh.splits_ffn()) return 1;
  return static_cast<std::int64_t>(
      microbatches_of(requests_of(plan), plan.pass.pass_microbatches).size());
}

Bytes cache_of_layers(const ModelSpec& model, const RequestBatch& batch, std::int64_t tensor,
                      CacheSplit split, std::int64_t first, std::int64_t end,
                      std::int64_t context) {
  const std::int64_t parts = split == CacheSplit::kRequests ? tensor : 1;
  Bytes sum;
  for (std::int64_t layer = first; layer < end; ++layer) {
    for (const RequestGroup& group : batch.groups) {
      sum += (group.sequences + parts - 1) / parts *
             cache_size(model, kind_of(model, layer), tensor / parts, batch.cache,
                        (group.keys() + context - 1) / context);
    }
  }
  return sum;
}

void check_inference(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.require(plan.pass.pass_microbatches == 1 || plan.mesh.splits_ffn(), "pass_microbatches",
                "is " + std::to_string(plan.pass.pass_microbatches) +
                    ", but without ffn_chips a pass is not cut: 1, or ffn_chips");
  if (!plan.is_inference()) return check_training(plan, rules);
  check_training_keys(plan, rules);
  check_unsupported(plan, model, rules);
  check_experts_of_group(plan, model, rules);
  check_split(plan, model, rules);
  check_expert_keys(plan, model, rules);
  check_requests(plan, model, rules);
}

}  // namespace stepsim
