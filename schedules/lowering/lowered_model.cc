#include "schedules/lowering/lowered_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "schedules/lowering/collective_matmul.h"
#include "schedules/lowering/context.h"
#include "schedules/lowering/expert_chips.h"
#include "schedules/lowering/recompute.h"
#include "schedules/lowering/weight_stationary.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/pass_exchange.h"
#include "workload/accumulation.h"
#include "workload/adapters.h"
#include "workload/attention.h"
#include "workload/eager.h"
#include "workload/experts.h"
#include "workload/vision.h"

namespace stepsim {
namespace {

// Adds placeholders for weight gradients, one for each kernel that makes some.
void add_placeholders(Layer& layer, DataType type) {
  for (LayerOp& op : layer.ops) {
    for (const Kernel& kernel : op.weight_gradient) {
      const bool is_matmul = kernel.kind == KernelKind::kMatmul;
      if (!is_matmul && op.parameters.own == 0) continue;
      const std::int64_t values = is_matmul ? kernel.m * kernel.n : op.parameters.own;
      op.workspace.backward += values * size_of(type);
    }
  }
}

// The matmuls of embedding and heads hold a placeholder only while their backward runs. The
// gradient of an embedding's table is made whole and then added.
ModelLayers with_placeholders(ModelLayers layers, DataType type) {
  add_placeholders(layers.embedding, type);
  add_placeholders(layers.head, type);
  for (PredictionModule& module : layers.prediction) add_placeholders(module.head, type);
  return layers;
}

// Returns the kernels of the first or the last compute step; nullptr if there is none.
std::vector<Kernel>* kernels_at(std::vector<LayerStep>& steps, bool first) {
  std::vector<Kernel>* found = nullptr;
  for (LayerStep& step : steps) {
    if (step.kind != LayerStep::Kind::kCompute) continue;
    found = &step.kernels;
    if (first) break;
  }
  return found;
}

// PyTorch's FSDP2 copies parameters out of the buffer of each gather (foreach_all_gather_copy_out)
// and gradients into the buffer that is reduced, in its type (chunk_cat). Both run on the compute
// stream. A layer whose forward is repeated has its second gather there.
LoweredLayer with_copies(LoweredLayer layer, const ParallelPlan& plan) {
  if (!plan.buffers.fsdp_copies || layer.empty()) return layer;
  const std::int64_t parameters = layer.parameters;
  const Bytes weights = (parameters + layer.frozen) * size_of(plan.weights());
  const Kernel out{
      .name = "copy_gathered", .type = plan.weights(), .read = weights, .written = weights};
  const Kernel in{.name = "copy_gradients",
                  .type = plan.activations(),
                  .read = parameters * size_of(plan.activations()),
                  .written = Bytes(parameters * plan.update.gradient_bytes)};
  const auto begin_with = [&out](std::vector<LayerStep>& steps) {
    std::vector<Kernel>* const kernels = kernels_at(steps, true);
    if (kernels != nullptr) kernels->insert(kernels->begin(), out);
  };
  begin_with(layer.forward);
  if (!layer.again.empty()) begin_with(layer.again);
  for (std::vector<LayerStep>* backward : {&layer.backward, &layer.split_backward}) {
    if (plan.state.reshard_after_forward && layer.again.empty()) begin_with(*backward);
    std::vector<Kernel>* const last = kernels_at(*backward, false);
    if (last != nullptr && parameters > 0) last->push_back(in);
  }
  return layer;
}

// The host launches a block's runs of kernels as graphs (cuda_graphs = blocks), but not what has as
// many tokens as it reads.
Layer with_graphs(Layer block, const ParallelPlan& plan) {
  if (!plan.is_launched() || plan.launches.cuda_graphs != CudaGraphs::kBlocks) return block;
  for (LayerOp& op : block.ops) {
    if (op.region == Region::kExpert && plan.launches.host_reads_counts) continue;
    for (auto* kernels : {&op.forward, &op.again, &op.input_gradient, &op.weight_gradient}) {
      for (Kernel& kernel : *kernels) kernel.launches = 0;
    }
  }
  return block;
}

// All tensor ranks get all logits, and draw the same token.
OpExchange gather_logits(const Layer& head, DataType communicated) {
  OpExchange gather{.op = head.ops.size() - 1};
  gather.before_forward = {exchange(Lane::kTensor, CollectiveOp::kAllGather,
                                    head.ops.back().tensor.crossing, communicated)};
  return gather;
}

// Caches by request: queries go to the chips that keep them, results come back. Context ranks
// gather keys and values, or pass them round.
std::vector<OpExchange> with_cache_exchanges(const Layer& block, DataType communicated,
                                             std::vector<OpExchange> exchanges) {
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const LayerOp& op = block.ops[i];
    OpExchange moved{.op = i};
    const auto to_all = [communicated](Bytes bytes) {
      return exchange(Lane::kTensor, CollectiveOp::kAllToAll, bytes, communicated);
    };
    if (op.pass.sent_before + op.pass.sent_after > Bytes(0)) {
      moved.before_forward.push_back(to_all(op.pass.sent_before));
      moved.after_forward.push_back(to_all(op.pass.sent_after));
    }
    if (op.pass.gathered_before > Bytes(0)) {
      moved.before_forward.push_back(exchange(Lane::kContext, CollectiveOp::kAllGather,
                                              op.pass.gathered_before, communicated));
    }
    if (!op.pass.parts.empty()) moved.forward = ring_of_pass(op, communicated);
    if (!moved.before_forward.empty() || !moved.forward.empty()) {
      exchanges.push_back(std::move(moved));
    }
  }
  return exchanges;
}

// Moves background gathers before the gather of a matmul, so that the latter stands next to its
// matmul.
void let_background_go_first(std::vector<LayerStep>& steps) {
  for (std::size_t i = 1; i < steps.size(); ++i) {
    LayerStep& before = steps[i - 1];
    LayerStep& step = steps[i];
    if (before.kind == LayerStep::Kind::kCollective && step.kind == LayerStep::Kind::kBackground) {
      std::swap(before, step);
    }
  }
}

// Cuts the collective matmuls of the forward and of the whole backward.
LoweredLayer cut_matmuls(LoweredLayer layer, std::int64_t chunks) {
  let_background_go_first(layer.backward);
  layer.forward = overlap_matmuls(std::move(layer.forward), chunks);
  layer.backward = overlap_matmuls(std::move(layer.backward), chunks);
  return layer;
}

// The same, with collectives that stay whole beside all but a piece of their matmuls.
LoweredLayer exchange_in_pieces(LoweredLayer layer, std::int64_t pieces) {
  let_background_go_first(layer.backward);
  layer.forward = exchange_beside_matmuls(std::move(layer.forward), pieces);
  layer.backward = exchange_beside_matmuls(std::move(layer.backward), pieces);
  return layer;
}

// `in_parts`: includes the parts that recompute repeats by themselves.
LoweredLayer lower_block(Layer block, const ContextShare& share, ParallelPlan plan, Bytes crossing,
                         std::vector<OpExchange> exchanges, bool in_parts) {
  // The gather of an input runs beside the weight gradient, which is not the matmul that is cut.
  if (plan.pieces.tensor_chunks > 1 || plan.pieces.tensor_pieces > 1)
    plan.pieces.overlap_tensor = true;
  std::ranges::move(width_exchanges(block, plan), std::back_inserter(exchanges));
  if (plan.mesh.cp > 1 && !plan.is_inference()) {
    std::ranges::move(context_exchanges(block, share, plan), std::back_inserter(exchanges));
  }
  if (in_parts) block = recompute_parts(std::move(block), plan, crossing, exchanges);
  LoweredLayer lowered = lower_tensor(block, plan, crossing, false, exchanges);
  if (plan.pieces.tensor_chunks > 1)
    return cut_matmuls(std::move(lowered), plan.pieces.tensor_chunks);
  if (plan.pieces.tensor_pieces > 1)
    return exchange_in_pieces(std::move(lowered), plan.pieces.tensor_pieces);
  return lowered;
}

LoweredBlock lower_roles(const Layer& block, const ContextShare& share, const ParallelPlan& plan,
                         Bytes crossing, const std::vector<OpExchange>& exchanges) {
  LoweredBlock result;
  const auto role = [&result](BlockRecompute of) -> LoweredLayer& {
    return result.roles[static_cast<std::size_t>(of)];
  };
  LoweredLayer& whole = role(BlockRecompute::kNone);
  whole = lower_block(block, share, plan, crossing, exchanges, false);
  if (plan.recomputing.kind == Recompute::kNone) return result;
  if (plan.recomputing.kind != Recompute::kFull) {
    role(BlockRecompute::kAlone) = lower_block(block, share, plan, crossing, exchanges, true);
    return result;
  }
  for (const BlockRecompute of : {BlockRecompute::kAlone, BlockRecompute::kFirst,
                                  BlockRecompute::kInside, BlockRecompute::kLast}) {
    role(of) = recompute_fully(whole, of);
  }
  return result;
}

// Moves the routed experts of a block to the end of `apart`. Returns the exchanges of what remains.
std::vector<OpExchange> take_experts(Layer& block, const ParallelPlan& plan,
                                     const ExpertExchange& exchange,
                                     std::vector<LoweredExperts>& apart) {
  apart.emplace_back();
  if (!block.routing) return {};
  SplitBlock split = split_block(std::move(block), plan, exchange);
  block = std::move(split.attention);
  apart.back().steps = lower_tensor(split.experts, plan, Bytes(0), false, split.of_experts);
  apart.back().layer = std::move(split.experts);
  return std::move(split.of_attention);
}

std::int64_t context_roles(const ModelSpec& model, const ParallelPlan& plan) {
  return context_ranks_differ(plan, model) ? plan.mesh.cp : 1;
}
std::int64_t expert_roles(const ModelSpec& model, const Ranks& mesh) {
  return model.experts.load.empty() ? 1 : mesh.ep;
}

// In a pass of inference the ranks of a tensor group all have the tokens of experts that it
// divides.
bool sends_tokens(const ParallelPlan& plan) {
  return !plan.is_inference() || sends_in_pass(plan);
}

PromptRing ring_of(const Ranks& mesh, ContextMode mode) {
  if (mesh.cp == 1) return PromptRing::kNone;
  if (mode == ContextMode::kRing) return PromptRing::kStretch;
  return mode == ContextMode::kZigzagRing ? PromptRing::kZigzag : PromptRing::kNone;
}

PromptShare prompt_share(const Ranks& mesh, ContextMode mode, const Role& role) {
  return {.parts = mesh.cp, .ring = ring_of(mesh, mode), .rank = role.context_rank};
}

HeldExperts held_experts(const ParallelPlan& plan, const Role& role) {
  return {.parts = plan.mesh.ep,
          .tensor = plan.mesh.etp,
          .rank = role.expert_rank,
          .one_copy_each = plan.experts.dispatch == Dispatch::kAllToAll,
          .sending_replicas = plan.splits_ffn() ? plan.mesh.dp : 0,
          .host_reads_counts =
              plan.is_launched() && plan.launches.host_reads_counts && sends_tokens(plan)};
}

// New tokens of all requests of a pass go through its layers together.
std::int64_t tokens_of_pass(const ParallelPlan& plan) {
  const std::int64_t divisor = plan.divides_tokens() ? plan.mesh.tp : 1;
  return tokens_of_chip(requests_of(plan), plan.mesh.cp, divisor);
}

// Returns the pictures of a micro-batch, or of a pass's new prompts.
std::int64_t pictures_of_rank(const ParallelPlan& plan) {
  if (plan.batch.vision_tokens == 0) return 0;
  std::int64_t sequences = plan.batch.microbatch_size;
  if (plan.is_inference()) {
    sequences = 0;
    for (const RequestGroup& group : requests_of(plan).groups) {
      if (!group.generates) sequences += group.sequences;
    }
  }
  const std::int64_t each = plan.batch.vision_tokens / plan.picture_tokens();
  return (sequences * each + plan.mesh.cp - 1) / plan.mesh.cp;
}

// Experts that compute in a narrow type are held in it, unless the plan says another.
std::optional<DataType> expert_weights(const ParallelPlan& plan) {
  if (plan.pass.expert_weight_type || !plan.pass.expert_type) return plan.pass.expert_weight_type;
  return bits_of(*plan.pass.expert_type) < bits_of(plan.weights()) ? plan.pass.expert_type
                                                                   : std::nullopt;
}

// The vision part is whole on every tensor rank. What isn't trained has no backward, and a pass
// without new prompts has no pictures.
std::vector<LoweredLayer> lower_vision(VisionLayers& vision, const ParallelPlan& plan) {
  if (vision.blocks == 0) return {};
  ParallelPlan whole = plan;
  whole.mesh.tp = 1;
  whole.tensor.sequence_parallel = false;
  const bool is_pass = plan.is_inference();
  const bool rests = pictures_of_rank(plan) == 0;
  if (!is_pass && plan.training.vision != VisionTraining::kAll) {
    vision.entry = frozen(std::move(vision.entry));
    vision.block = frozen(std::move(vision.block));
  }
  if (!is_pass && plan.training.vision == VisionTraining::kNone) {
    vision.projector = frozen(std::move(vision.projector));
  }
  std::vector<LoweredLayer> lowered;
  for (const Layer* layer : {&vision.entry, &vision.block, &vision.projector}) {
    Layer runs = *layer;
    if (rests) runs = without_kernels(std::move(runs));
    lowered.push_back(lower_tensor(runs, whole, Bytes(0), false));
    lowered.back().sequence_parameters = 0;  // tensor ranks have equal gradients
  }
  return lowered;
}

}  // namespace

DataTypes data_types(const ParallelPlan& plan) {
  return {.weights = plan.weights(),
          .expert_weights = expert_weights(plan),
          .experts = plan.pass.expert_type,
          .activations = plan.activations(),
          .matmul = plan.precision.type,
          .gradients = plan.update.gradient_bytes == 4 ? DataType::kFp32 : DataType::kBf16,
          .communication = plan.communicated(),
          .dispatch = plan.dispatched(),
          .combine = plan.combined()};
}

Shard shard_of(const ParallelPlan& plan, const Role& role) {
  const bool is_pass = plan.is_inference();
  return {.sequences = is_pass ? tokens_of_pass(plan) : plan.batch.microbatch_size,
          .sequence_length = is_pass ? 1 : plan.batch.sequence,
          .document_length = plan.batch.document_length,
          .tensor = plan.mesh.tp,
          .sequence_parallel = plan.divides_tokens(),
          .tensor_width = plan.tensor.tensor_width,
          .context = is_pass ? 1 : plan.mesh.cp,
          .pictures = pictures_of_rank(plan),
          .picture_tokens = plan.picture_tokens(),
          .experts = held_experts(plan, role),
          .types = data_types(plan),
          .kernels = plan.kernels,
          .narrow = plan.narrow,
          .loss = plan.loss,
          .habits = plan.habits,
          .prompt = is_pass ? prompt_share(plan.mesh, plan.tensor.cp_mode, role) : PromptShare{},
          .cache = plan.cache,
          .pass_experts = plan.pass_experts};
}

Bytes message_size(const ModelSpec& model, const ParallelPlan& plan, const ModelLayers& layers,
                   std::int64_t layer) {
  const bool in_shares = plan.tensor.sequence_parallel || plan.scatters_messages();
  const Bytes stream = in_shares ? layers.boundary / plan.mesh.tp : layers.boundary;
  return stream + handed_on(model, layers, shard_of(plan, {}), layer);
}

LoweredModel lower_model(const ModelSpec& model, const ParallelPlan& plan, const Role& role,
                         const ExpertExchange& exchange) {
  Shard shard = shard_of(plan, role);
  if (plan.experts.dispatch == Dispatch::kTwoLevel && !exchange.matrices.empty()) {
    shard.experts.arriving_tokens = arriving_tokens(token_routing(part_of_model(model, shard)),
                                                    plan.mesh, exchange, role.expert_rank);
  }
  LoweredModel lowered{.layers = plan.is_inference()
                                     ? inference_layers(model, shard, requests_of(plan))
                                     : build_layers(model, shard),
                       .experts_apart = {},
                       .attention = {},
                       .embedding = {},
                       .blocks = {},
                       .head = {},
                       .prediction = {}};
  ModelLayers& layers = lowered.layers;
  if (plan.kernels.eager_elementwise || plan.kernels.eager_gate) {
    layers = with_eager_kernels(std::move(layers), model, shard.types.activations,
                                plan.kernels.eager_gate ? EagerKernels::kGate : EagerKernels::kAll);
  }
  if (plan.buffers.copy_inputs)
    layers = with_input_copies(std::move(layers), shard.types.activations);
  if (plan.training.lora_rank)
    layers = with_adapters(std::move(layers), plan.adapters(), shard.types);
  if (plan.buffers.gradient_placeholders)
    layers = with_placeholders(std::move(layers), plan.weights());
  if (plan.update.separate_accumulation) layers = with_separate_accumulation(std::move(layers));
  for (Layer& block : layers.blocks) {
    if (plan.pieces.overlap_shared_experts && block.routing) {
      block = shared_experts_beside_dispatch(std::move(block));
    }
    block = with_graphs(std::move(block), plan);
  }
  const Bytes crossing = layers.tensor_boundary;
  const auto lower_end = [&](const Layer& layer, bool is_last) {
    std::vector<OpExchange> exchanges = width_exchanges(layer, plan);
    if (is_last && plan.is_inference() && plan.mesh.tp > 1)
      exchanges.push_back(gather_logits(layer, plan.communicated()));
    return with_copies(lower_tensor(layer, plan, crossing, is_last, exchanges), plan);
  };
  const auto with_copies_of_roles = [&plan](LoweredBlock block) {
    for (LoweredLayer& layer : block.roles) layer = with_copies(std::move(layer), plan);
    return block;
  };
  lowered.vision = lower_vision(layers.vision, plan);
  lowered.embedding = lower_end(layers.embedding, false);
  lowered.embedding.reads_weights_again = false;
  lowered.head = lower_end(layers.head, true);
  const std::vector<BlockKind> kinds = model.kind == ModelKind::kMlpStack
                                           ? std::vector<BlockKind>{{.mixer = Mixer::kNone}}
                                           : kinds_of(model);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const ModelSpec own = as_in(model, kinds[kind]);
    lowered.attention.emplace_back();
    if (plan.mesh.cp > 1 && !plan.is_inference() && kinds[kind].attends()) {
      lowered.attention.back() = attention_shape(part_of_model(own, shard), kinds[kind]);
    }
    const ContextShare share{.shape = lowered.attention.back(),
                             .causal = own.attention.causal,
                             .window = own.attention.window,
                             .window_kind = own.attention.window_kind,
                             .rank = role.context_rank};
    std::vector<OpExchange> exchanges;
    if (plan.splits_ffn()) {
      exchanges = take_experts(layers.blocks[kind], plan, exchange, lowered.experts_apart);
    } else {
      exchanges = expert_exchanges(layers.blocks[kind], plan, exchange, role.expert_rank);
    }
    lowered.blocks.push_back(with_copies_of_roles(lower_roles(
        layers.blocks[kind], share, plan, crossing / plan.tensor.tensor_width,
        with_cache_exchanges(layers.blocks[kind], plan.communicated(), std::move(exchanges)))));
  }
  for (const PredictionModule& module : layers.prediction) {
    lowered.prediction.push_back({.entry = lower_tensor(module.entry, plan, crossing, false),
                                  .head = lower_tensor(module.head, plan, crossing, true)});
  }
  return lowered;
}

std::vector<Role> roles_of(const ModelSpec& model, const ParallelPlan& plan) {
  std::vector<Role> roles;
  for (std::int64_t expert = 0; expert < expert_roles(model, plan.mesh); ++expert) {
    for (std::int64_t context = 0; context < context_roles(model, plan); ++context) {
      roles.push_back({.context_rank = context, .expert_rank = expert});
    }
  }
  return roles;
}

std::size_t role_of(const ModelSpec& model, const ParallelPlan& plan, std::int64_t rank) {
  const std::int64_t contexts = context_roles(model, plan);
  const std::int64_t context = coordinate(plan, rank, PlanAxis::kContext) % contexts;
  const std::int64_t expert =
      expert_roles(model, plan.mesh) == 1 ? 0 : coordinate(plan, rank, ExpertAxis::kExpert);
  return static_cast<std::size_t>(expert * contexts + context);
}

}  // namespace stepsim
