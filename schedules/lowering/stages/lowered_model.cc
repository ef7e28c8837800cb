#include "schedules/lowering/stages/lowered_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "schedules/lowering/recompute/recompute_choice.h"
#include "schedules/lowering/stages/expert_chips.h"
#include "schedules/lowering/steps/collective_matmul.h"
#include "schedules/lowering/steps/context.h"
#include "schedules/lowering/steps/weight_stationary.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/pass_exchange.h"
#include "workload/experts.h"
#include "workload/layers.h"
#include "workload/mixers/attention.h"
#include "workload/parts/accumulation.h"
#include "workload/parts/adapters.h"
#include "workload/parts/eager.h"
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

// The host launches a block's runs of kernels as graphs (cuda_graphs = blocks), but not what has as
// many tokens as it reads.
Layer with_graphs(Layer block, const HostLaunches& launches) {
  if (!launches.delay_ops() || launches.cuda_graphs != CudaGraphs::kBlocks) return block;
  for (LayerOp& op : block.ops) {
    if (op.region == Region::kExpert && launches.host_reads_counts) continue;
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

// In a pass of inference the ranks of a tensor group all have the tokens of experts that it
// divides.
bool sends_tokens(const Ranks& mesh, bool is_pass) {
  return !is_pass || sends_in_pass(mesh);
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
          .sending_replicas = plan.mesh.splits_ffn() ? plan.mesh.dp : 0,
          .host_reads_counts = plan.launches.delay_ops() && plan.launches.host_reads_counts &&
                               sends_tokens(plan.mesh, plan.is_inference())};
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
  const std::int64_t each = plan.batch.vision_tokens / plan.batch.tokens_of_picture();
  return (sequences * each + plan.mesh.cp - 1) / plan.mesh.cp;
}

// Experts that compute in a narrow type are held in it, unless the plan says another.
std::optional<DataType> expert_weights(const InferencePass& pass, DataType weights) {
  if (pass.expert_weight_type || !pass.expert_type) return pass.expert_weight_type;
  return bits_of(*pass.expert_type) < bits_of(weights) ? pass.expert_type : std::nullopt;
}

}  // namespace

DataTypes data_types(const ParallelPlan& plan) {
  return {.weights = plan.weights(),
          .expert_weights = expert_weights(plan.pass, plan.weights()),
          .experts = plan.pass.expert_type,
          .activations = plan.precision.activations(),
          .matmul = plan.precision.type,
          .gradients = plan.update.gradient_bytes == 4 ? DataType::kFp32 : DataType::kBf16,
          .communication = plan.precision.communicated(),
          .dispatch = plan.precision.dispatched(),
          .combine = plan.precision.combined()};
}

Shard shard_of(const ParallelPlan& plan, const Role& role) {
  const bool is_pass = plan.is_inference();
  const bool divides = plan.divides_tokens();
  // New tokens of all requests of a pass go through its layers together.
  const auto tokens_of_pass = [&] {
    return tokens_of_chip(requests_of(plan), plan.mesh.cp, divides ? plan.mesh.tp : 1);
  };
  return {.sequences = is_pass ? tokens_of_pass() : plan.batch.microbatch_size,
          .sequence_length = is_pass ? 1 : plan.batch.sequence,
          .document_length = plan.batch.document_length,
          .tensor = plan.mesh.tp,
          .sequence_parallel = divides,
          .tensor_width = plan.tensor.tensor_width,
          .context = is_pass ? 1 : plan.mesh.cp,
          .pictures = pictures_of_rank(plan),
          .picture_tokens = plan.batch.tokens_of_picture(),
          .experts = held_experts(plan, role),
          .types = data_types(plan),
          .kernels = plan.kernels,
          .narrow = plan.narrow,
          .loss = plan.loss,
          .habits = plan.habits,
          .prompt = is_pass ? prompt_share(plan.mesh, plan.tensor.cp_mode, role) : PromptShare{},
          .cache = plan.cache,
          .expert_spread = plan.pass.expert_spread};
}

Bytes message_size(const ModelSpec& model, const ParallelPlan& plan, const ModelLayers& layers,
                   std::int64_t layer) {
  const bool in_shares = plan.tensor.sequence_parallel || plan.scatters_messages();
  const Bytes stream = in_shares ? layers.boundary / plan.mesh.tp : layers.boundary;
  return stream + handed_on(model, layers, shard_of(plan, {}), layer);
}

namespace {

class ModelLowering {
 public:
  ModelLowering(const ModelSpec& model, const ParallelPlan& plan, const Role& role,
                const ExpertExchange& exchange)
      : model_(model),
        plan_(plan),
        role_(role),
        exchange_(exchange),
        group_(tensor_group(plan)),
        shard_(shard_of(plan, role)) {
    if (plan.experts.dispatch == Dispatch::kTwoLevel && !exchange.matrices.empty()) {
      shard_.experts.arriving_tokens = arriving_tokens(token_routing(part_of_model(model, shard_)),
                                                       plan.mesh, exchange, role.expert_rank);
    }
  }

  LoweredModel lowered() const {
    LoweredModel lowered{.layers = built_layers(),
                         .experts_apart = {},
                         .attention = {},
                         .embedding = {},
                         .blocks = {},
                         .head = {},
                         .prediction = {}};
    ModelLayers& layers = lowered.layers;
    const Bytes crossing = layers.tensor_boundary;
    const auto lower_end = [&](const Layer& layer, bool is_last) {
      std::vector<OpExchange> exchanges = width_exchanges(layer, group_);
      if (is_last && plan_.is_inference() && plan_.mesh.tp > 1)
        exchanges.push_back(gather_logits(layer, plan_.precision.communicated()));
      return with_copies(lower_tensor(layer, group_, crossing, is_last, exchanges));
    };
    const auto with_copies_of_roles = [this](LoweredBlock block) {
      for (LoweredLayer& layer : block.roles) layer = with_copies(std::move(layer));
      return block;
    };
    lowered.vision = lower_vision(layers.vision);
    lowered.embedding = lower_end(layers.embedding, false);
    lowered.embedding.reads_weights_again = false;
    lowered.head = lower_end(layers.head, true);
    const std::vector<BlockKind> kinds = model_.kind == ModelKind::kMlpStack
                                             ? std::vector<BlockKind>{{.mixer = Mixer::kNone}}
                                             : kinds_of(model_);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      const ModelSpec own = as_in(model_, kinds[kind]);
      lowered.attention.emplace_back();
      if (plan_.mesh.cp > 1 && !plan_.is_inference() && kinds[kind].attends()) {
        lowered.attention.back() = attention_shape(part_of_model(own, shard_), kinds[kind]);
      }
      const ContextShare share{.mesh = plan_.mesh,
                               .batch = plan_.batch,
                               .mode = plan_.tensor.cp_mode,
                               .shape = lowered.attention.back(),
                               .causal = own.attention.causal,
                               .window = own.attention.window,
                               .window_kind = own.attention.window_kind,
                               .rank = role_.context_rank};
      std::vector<OpExchange> exchanges;
      if (plan_.mesh.splits_ffn()) {
        exchanges = take_experts(layers.blocks[kind], lowered.experts_apart);
      } else {
        exchanges = expert_exchanges(layers.blocks[kind], plan_, exchange_, role_.expert_rank);
      }
      lowered.blocks.push_back(with_copies_of_roles(
          lower_roles(layers.blocks[kind], share, crossing / plan_.tensor.tensor_width,
                      with_cache_exchanges(layers.blocks[kind], plan_.precision.communicated(),
                                           std::move(exchanges)))));
    }
    for (const PredictionModule& module : layers.prediction) {
      lowered.prediction.push_back({.entry = lower_tensor(module.entry, group_, crossing, false),
                                    .head = lower_tensor(module.head, group_, crossing, true)});
    }
    return lowered;
  }

 private:
  // The layers of the rank, with what the plan does to any of them.
  ModelLayers built_layers() const {
    ModelLayers layers = plan_.is_inference() ? inference_layers(model_, shard_, requests_of(plan_))
                                              : build_layers(model_, shard_);
    if (plan_.kernels.eager_elementwise || plan_.kernels.eager_gate) {
      layers =
          with_eager_kernels(std::move(layers), model_, shard_.types.activations,
                             plan_.kernels.eager_gate ? EagerKernels::kGate : EagerKernels::kAll);
    }
    if (plan_.buffers.copy_inputs)
      layers = with_input_copies(std::move(layers), shard_.types.activations);
    if (plan_.training.lora_rank)
      layers = with_adapters(std::move(layers), plan_.adapters(), shard_.types);
    if (plan_.buffers.gradient_placeholders)
      layers = with_placeholders(std::move(layers), plan_.weights());
    if (plan_.update.separate_accumulation) layers = with_separate_accumulation(std::move(layers));
    for (Layer& block : layers.blocks) {
      if (plan_.pieces.overlap_shared_experts && block.routing) {
        block = shared_experts_beside_dispatch(std::move(block));
      }
      block = with_graphs(std::move(block), plan_.launches);
    }
    return layers;
  }

  // PyTorch's FSDP2 copies parameters out of the buffer of each gather
  // (foreach_all_gather_copy_out) and gradients into the buffer that is reduced, in its type
  // (chunk_cat). Both run on the compute stream. A layer whose forward is repeated has its second
  // gather there.
  LoweredLayer with_copies(LoweredLayer layer) const {
    if (!plan_.buffers.fsdp_copies || layer.empty()) return layer;
    const std::int64_t parameters = layer.parameters;
    const Bytes weights = (parameters + layer.frozen) * size_of(plan_.weights());
    const Kernel out{
        .name = "copy_gathered", .type = plan_.weights(), .read = weights, .written = weights};
    const Kernel in{.name = "copy_gradients",
                    .type = plan_.precision.activations(),
                    .read = parameters * size_of(plan_.precision.activations()),
                    .written = Bytes(parameters * plan_.update.gradient_bytes)};
    const auto begin_with = [&out](std::vector<LayerStep>& steps) {
      std::vector<Kernel>* const kernels = kernels_at(steps, true);
      if (kernels != nullptr) kernels->insert(kernels->begin(), out);
    };
    begin_with(layer.forward);
    if (!layer.again.empty()) begin_with(layer.again);
    for (std::vector<LayerStep>* backward : {&layer.backward, &layer.split_backward}) {
      if (plan_.state.reshard_after_forward && layer.again.empty()) begin_with(*backward);
      std::vector<Kernel>* const last = kernels_at(*backward, false);
      if (last != nullptr && parameters > 0) last->push_back(in);
    }
    return layer;
  }

  // `in_parts`: includes the parts that recompute repeats by themselves.
  LoweredLayer lower_block(const Layer& block, const ContextShare& share, Bytes crossing,
                           std::vector<OpExchange> exchanges, bool in_parts) const {
    const std::int64_t chunks = plan_.pieces.tensor_chunks;
    const std::int64_t pieces = plan_.pieces.tensor_pieces;
    TensorGroup group = group_;
    // The gather of an input runs beside the weight gradient, which is not the matmul that is cut.
    if (chunks > 1 || pieces > 1) group.overlaps = true;
    std::ranges::move(width_exchanges(block, group), std::back_inserter(exchanges));
    if (plan_.mesh.cp > 1 && !plan_.is_inference()) {
      std::ranges::move(context_exchanges(block, share, plan_.precision),
                        std::back_inserter(exchanges));
    }
    const auto made_again = [&] {
      const RecomputeChoice choice(block, plan_.recomputing, plan_.mesh, plan_.tensor.cp_mode);
      return recompute_parts(block, choice, group, crossing, exchanges);
    };
    const Layer runs = in_parts ? made_again() : block;
    LoweredLayer lowered = lower_tensor(runs, group, crossing, false, exchanges);
    if (chunks > 1) return cut_matmuls(std::move(lowered), chunks);
    if (pieces > 1) return exchange_in_pieces(std::move(lowered), pieces);
    return lowered;
  }

  LoweredBlock lower_roles(const Layer& block, const ContextShare& share, Bytes crossing,
                           const std::vector<OpExchange>& exchanges) const {
    LoweredBlock result;
    const auto role = [&result](BlockRecompute of) -> LoweredLayer& {
      return result.roles[static_cast<std::size_t>(of)];
    };
    LoweredLayer& whole = role(BlockRecompute::kNone);
    whole = lower_block(block, share, crossing, exchanges, false);
    if (plan_.recomputing.kind == Recompute::kNone) return result;
    if (plan_.recomputing.kind != Recompute::kFull) {
      role(BlockRecompute::kAlone) = lower_block(block, share, crossing, exchanges, true);
      return result;
    }
    for (const BlockRecompute of : {BlockRecompute::kAlone, BlockRecompute::kFirst,
                                    BlockRecompute::kInside, BlockRecompute::kLast}) {
      role(of) = recompute_fully(whole, of);
    }
    return result;
  }

  // Moves the routed experts of a block to the end of `apart`. Returns the exchanges of what
  // remains.
  std::vector<OpExchange> take_experts(Layer& block, std::vector<LoweredExperts>& apart) const {
    apart.emplace_back();
    if (!block.routing) return {};
    SplitBlock split = split_block(std::move(block), plan_.mesh, plan_.precision,
                                   requests_of(plan_).tokens(), exchange_);
    block = std::move(split.attention);
    apart.back().steps = lower_tensor(split.experts, group_, Bytes(0), false, split.of_experts);
    apart.back().layer = std::move(split.experts);
    return std::move(split.of_attention);
  }

  // The vision part is whole on every tensor rank. What isn't trained has no backward, and a pass
  // without new prompts has no pictures.
  std::vector<LoweredLayer> lower_vision(VisionLayers& vision) const {
    if (vision.blocks == 0) return {};
    TensorGroup whole = group_;
    whole.ranks = 1;
    whole.sequence_parallel = false;
    const bool is_pass = plan_.is_inference();
    const bool rests = shard_.pictures == 0;
    if (!is_pass && plan_.training.vision != VisionTraining::kAll) {
      vision.entry = frozen(std::move(vision.entry));
      vision.block = frozen(std::move(vision.block));
    }
    if (!is_pass && plan_.training.vision == VisionTraining::kNone) {
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

  const ModelSpec& model_;
  const ParallelPlan& plan_;
  const Role& role_;
  const ExpertExchange& exchange_;
  TensorGroup group_;
  Shard shard_;
};

}  // namespace

LoweredModel lower_model(const ModelSpec& model, const ParallelPlan& plan, const Role& role,
                         const ExpertExchange& exchange) {
  return ModelLowering(model, plan, role, exchange).lowered();
}

Roles roles_of(const ModelSpec& model, const ParallelPlan& plan) {
  const bool differ = context_ranks_differ(plan.mesh, plan.tensor.cp_mode,
                                           plan.batch.document_length, model.attention);
  return {.contexts = differ ? plan.mesh.cp : 1,
          .experts = model.experts.load.empty() ? 1 : plan.mesh.ep};
}

std::size_t Roles::of(const Ranks& mesh, std::int64_t rank) const {
  const std::int64_t context = coordinate(mesh, rank, PlanAxis::kContext) % contexts;
  const std::int64_t expert = experts == 1 ? 0 : coordinate(mesh, rank, ExpertAxis::kExpert);
  return static_cast<std::size_t>(expert * contexts + context);
}

}  // namespace stepsim
