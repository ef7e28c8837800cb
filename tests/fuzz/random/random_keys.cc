#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "schedules/pipeline/published/published_schedule.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/plan_schedule.h"
#include "tests/fuzz/random/random_plan.h"

namespace stepsim {
namespace {

bool has_experts(const RandomJob& job) {
  return job.model.experts.routed > 0;
}

bool is_transformer(const RandomJob& job) {
  return job.model.kind == ModelKind::kTransformer;
}

bool is_fused(const ParallelPlan& plan) {
  return !plan.pipeline.own_schedule && !plan.pipeline.optimal_schedule &&
         published(plan.pipeline.schedule).fuses;
}

// ---- recompute ----

void choose_modules(Choices& choices, RandomJob& job) {
  using enum RecomputeModule;
  const ModelSpec& model = job.model;
  std::vector<RecomputeModule> modules;
  if (!is_transformer(job)) {
    modules = {kMlp};
  } else {
    const bool has_mlp =
        !has_experts(job) || model.experts.first_dense > 0 || model.experts.every > 1;
    if (choices.one_in(2)) modules.push_back(kAttention);
    if (choices.one_in(2)) modules.push_back(kNorm);
    if (choices.one_in(2)) modules.push_back(kActivation);
    if (model.latent.kv_rank > 0 && choices.one_in(2)) modules.push_back(kLatentUp);
    if (has_mlp && choices.one_in(3)) modules.push_back(kMlp);
    if (model.experts.shared_intermediate > 0 && choices.one_in(3))
      modules.push_back(kSharedExperts);
    if (has_experts(job) && choices.one_in(3)) modules.push_back(kExperts);
  }
  if (!modules.empty()) job.plan.recomputing.modules = modules;
}

void choose_recompute(Choices& choices, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  if (!choices.one_in(2)) return;
  using enum Recompute;
  plan.recomputing.kind =
      is_transformer(job)
          ? choices.pick({kFull, kSelective, kMatmuls, kAlternate, kAlternateMatmuls})
          : choices.pick({kFull, kSelective});
  if (plan.recomputing.kind == kSelective) choose_modules(choices, job);
  if (plan.recomputing.kind == kFull && choices.one_in(3)) plan.recomputing.block = 2;
  if (choices.one_in(4)) plan.recomputing.layers = choices.between(1, 3);
}

// ---- tensor and context ranks ----

void choose_chunked_matmuls(Choices& choices, ParallelPlan& plan) {
  const bool is_plain =
      plan.mesh.cp * plan.mesh.ep * plan.mesh.etp == 1 && plan.tensor.sequence_parallel;
  if (is_plain && !splits_all_backwards(plan.pipeline) && choices.one_in(4)) {
    plan.pieces.tensor_chunks = choices.between(2, 4);
  } else if (plan.tensor.sequence_parallel && !splits_all_backwards(plan.pipeline) &&
             choices.one_in(4)) {
    plan.pieces.tensor_pieces = choices.between(2, 8);
  }
  plan.pieces.overlap_tensor = !splits_all_backwards(plan.pipeline) && choices.one_in(4);
}

bool takes_width(const ModelSpec& model, const ParallelPlan& plan) {
  return plan.tensor.sequence_parallel && model.experts.routed == 0 && model.latent.kv_rank == 0 &&
         model.prediction.modules == 0 && plan.pieces.tensor_chunks == 1 &&
         plan.pieces.tensor_pieces == 1 && !plan.pieces.overlap_tensor &&
         (plan.is_inference() || model.attention.kv_heads % plan.mesh.tp == 0) &&
         model.state.heads == 0 && model.indexer.heads == 0 && model.local == LocalSpec{} &&
         !model.attention.qk_norm_whole && model.attention.gate == AttentionGate::kNone &&
         model.attention.query_rank == 0 && model.mixer_pattern.find('X') == std::string::npos &&
         !model.norms.parallel &&
         (plan.recomputing.kind == Recompute::kNone || plan.recomputing.kind == Recompute::kFull);
}

void choose_width(Choices& choices, const ModelSpec& model, ParallelPlan& plan) {
  if (plan.mesh.tp == 1 || !takes_width(model, plan) || !choices.one_in(4)) return;
  const std::int64_t width = choices.divisor_of(plan.mesh.tp);
  if (width < plan.mesh.tp) plan.tensor.tensor_width = width;
}

void choose_tensor(Choices& choices, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  if (plan.mesh.tp == 1) return;
  plan.tensor.sequence_parallel = has_experts(job) || !choices.one_in(5);
  choose_chunked_matmuls(choices, plan);
  choose_width(choices, job.model, plan);
}

void choose_context(Choices& choices, RandomJob& job) {
  using enum ContextMode;
  ParallelPlan& plan = job.plan;
  if (plan.mesh.cp == 1) return;
  plan.tensor.cp_mode = job.model.indexer.heads > 0
                            ? choices.pick({kAllGather, kUlysses})
                            : choices.pick({kZigzagRing, kRing, kAllGather, kUlysses});
}

// ---- pipeline and experts ----

void choose_messages(Choices& choices, ParallelPlan& plan) {
  if (plan.mesh.pp == 1) return;
  plan.overlap.pipeline = !choices.one_in(6);
  plan.messages.batch_p2p = plan.overlap.pipeline && choices.one_in(6);
  plan.messages.scatter_messages = choices.one_in(4);
}

void choose_dispatch(Choices& choices, const RandomCluster& cluster, ParallelPlan& plan) {
  const bool stands_in_nodes = cluster.axes.empty() && plan.mesh.ep % cluster.node == 0;
  if (!stands_in_nodes || !choices.one_in(3)) return;
  plan.experts.dispatch = Dispatch::kTwoLevel;
  if (choices.one_in(3)) plan.experts.node_limit = choices.between(1, 2);
}

void choose_expert_keys(Choices& choices, const RandomCluster& cluster, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  if (plan.mesh.ep == 1) return;
  choose_dispatch(choices, cluster, plan);
  if (!is_fused(plan) && plan.state.zero < 3 && choices.one_in(8)) {
    plan.overlap.expert_parallel = true;
  } else if (!is_fused(plan) && plan.mesh.tp == 1 && job.model.experts.shared_intermediate > 0) {
    plan.pieces.overlap_shared_experts = choices.one_in(3);
  }
  if (choices.one_in(6)) plan.precision.combine_type = DataType::kFp32;
  plan.kernels.grouped_experts = !choices.one_in(4);
  plan.kernels.sort_copies = choices.one_in(4);
  plan.kernels.mask_dispatch = job.model.experts.capacity_factor > 0 && !plan.kernels.sort_copies &&
                               plan.experts.dispatch == Dispatch::kAllToAll && choices.one_in(2);
}

// ---- data parallelism and the optimizer ----

void choose_fully_sharded(Choices& choices, ParallelPlan& plan) {
  plan.state.prefetch = static_cast<int>(choices.pick({1, 0, 2, 5}));
  plan.state.reshard_after_forward = !choices.one_in(3);
  plan.buffers.save_gathered = plan.state.reshard_after_forward && choices.one_in(3);
  plan.buffers.keep_root = plan.state.reshard_after_forward && choices.one_in(3);
  plan.buffers.shared_master = choices.one_in(4);
  plan.buffers.fsdp_copies = choices.one_in(4);
}

void choose_buckets(Choices& choices, ParallelPlan& plan) {
  plan.messages.gradient_bucket_parameters = choices.pick({40'000'000, 100'000, 1, 1'000'000});
  if (plan.state.zero != 2) plan.overlap.gradients = !choices.one_in(4);
  if (plan.state.zero > 0) plan.overlap.parameters = choices.one_in(4);
}

void choose_sharding(Choices& choices, ParallelPlan& plan) {
  const bool has_copies = placement_of(plan.pipeline) == Placement::kBidirectional;
  const bool takes_fsdp = !has_copies && !is_fused(plan);
  plan.state.zero = static_cast<int>(choices.below(takes_fsdp ? 4 : 3));
  if (plan.state.zero == 3) {
    choose_fully_sharded(choices, plan);
  } else {
    choose_buckets(choices, plan);
  }
  if (plan.state.zero == 0 || has_copies || !choices.one_in(4)) return;
  const std::int64_t shard = choices.divisor_of(plan.mesh.replicas());
  if (shard > 1) plan.state.shard = shard;
}

void choose_adam(Choices& choices, const RandomCluster& cluster, ParallelPlan& plan) {
  plan.update.optimizer_bytes = choices.pick({12, 8, 6, 16});
  plan.update.clip_gradients = choices.one_in(3);
  plan.update.post_validation = plan.update.clip_gradients && plan.mesh.pp > 1 && choices.one_in(3);
  if (!cluster.has_host || plan.buffers.shared_master || !choices.one_in(8)) return;
  plan.offload.optimizer = true;
  plan.update.host_optimizer = choices.one_in(2);
}

void choose_optimizer(Choices& choices, const RandomCluster& cluster, ParallelPlan& plan) {
  if (!plan.buffers.shared_master && choices.one_in(6)) {
    plan.training.optimizer = Optimizer::kNone;
    plan.update.clip_gradients = choices.one_in(4);
  } else {
    choose_adam(choices, cluster, plan);
  }
  plan.update.gradient_bytes = choices.pick({4, 2});
  if (plan.microbatches() == 1 && choices.one_in(4)) {
    plan.update.hold_gradients = false;
    plan.update.gradient_bytes = 2;
    if (plan.training.optimizer == Optimizer::kAdam) plan.update.optimizer_bytes = 8;
  }
  if (cluster.has_host && !plan.offload.optimizer)
    plan.offload.copy_checkpoint = choices.one_in(10);
  if (!cluster.has_host || !choices.one_in(10)) return;
  plan.offload.activations = true;
  if (choices.one_in(2)) plan.offload.layers = choices.between(1, 3);
}

// ---- types and kernels ----

DataType random_type(Choices& choices, const ChipSpec& chip) {
  using enum DataType;
  const DataType wanted = choices.pick({kBf16, kBf16, kFp8, kFp32, kFp16, kInt8});
  for (const DataType type : {wanted, kBf16, kFp16}) {
    if (chip.peak_of(type) > Throughput(0)) return type;
  }
  return kFp32;
}

bool has_bytes(const RandomJob& job) {
  const ParallelPlan& plan = job.plan;
  const DataType types[] = {plan.precision.type, plan.precision.communicated(),
                            plan.precision.dispatched(),
                            plan.narrow.activation_input_type.value_or(DataType::kFp32)};
  return std::ranges::any_of(types, [](DataType type) { return size_of(type) == Bytes(1); });
}

void choose_narrow(Choices& choices, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  const bool narrows = size_of(plan.precision.type) < size_of(plan.precision.activations());
  if (is_transformer(job) && choices.one_in(5)) plan.narrow.activation_input_type = DataType::kFp8;
  if (is_transformer(job) && has_bytes(job) && choices.one_in(2)) plan.narrow.scale_block = 128;
  plan.narrow.current_scaling = choices.one_in(5);
  plan.narrow.gather_narrow = choices.one_in(4);
  plan.narrow.keep_narrow_weights = choices.one_in(4);
  plan.narrow.round_weights = choices.one_in(5);
  plan.narrow.transpose_operands = choices.one_in(5);
  plan.narrow.transpose_weights = narrows && is_transformer(job) && choices.one_in(3);
  const bool rounds =
      (narrows && plan.narrow.scale_block) || plan.narrow.activation_input_type || has_experts(job);
  if (is_transformer(job) && rounds) plan.kernels.fused_elementwise = !choices.one_in(4);
}

void choose_attention_kernels(Choices& choices, ParallelPlan& plan) {
  const bool is_ring = plan.mesh.cp > 1 && (plan.tensor.cp_mode == ContextMode::kRing ||
                                            plan.tensor.cp_mode == ContextMode::kZigzagRing);
  plan.kernels.fused_attention = is_ring || !choices.one_in(5);
  if (plan.kernels.fused_attention && plan.mesh.cp == 1 && choices.one_in(8))
    plan.narrow.attention_result_bits = 12;
  if (plan.kernels.fused_attention && choices.one_in(8)) {
    plan.kernels.attention_library = choices.pick(
        {AttentionLibrary::kFlash1, AttentionLibrary::kFlash2, AttentionLibrary::kCudnn});
  }
}

bool may_be_frozen(const RandomJob& job) {
  const ParallelPlan& plan = job.plan;
  const bool table_in_one_place = plan.mesh.pp == 1 && plan.state.zero < 3;
  return is_transformer(job) && job.model.prediction.modules == 0 &&
         plan.pieces.tensor_chunks == 1 && plan.pieces.tensor_pieces == 1 &&
         plan.tensor.tensor_width == 1 && (!job.model.embedding.tied || table_in_one_place);
}

bool may_be_packed(const RandomJob& job) {
  return is_transformer(job) && job.model.indexer.heads == 0 &&
         job.model.mixer_pattern.find_first_of("NX") == std::string::npos;
}

void choose_launches(Choices& choices, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  plan.launches.host_launch_cost = Duration(choices.pick({1'000'000, 20'000'000, 500'000'000}));
  plan.launches.host_queue_depth = choices.pick({64, 1024});
  if (has_experts(job)) plan.launches.host_reads_counts = !choices.one_in(3);
  plan.launches.cuda_graphs =
      choices.pick({CudaGraphs::kNone, CudaGraphs::kBlocks, CudaGraphs::kStep});
  const bool is_read = has_experts(job) && plan.launches.host_reads_counts;
  if (plan.launches.cuda_graphs == CudaGraphs::kStep && is_read)
    plan.launches.cuda_graphs = CudaGraphs::kBlocks;
}

void choose_types(Choices& choices, const RandomCluster& cluster, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  plan.precision.type = random_type(choices, cluster.chip);
  if (choices.one_in(6)) plan.precision.weight_type = DataType::kFp32;
  if (choices.one_in(8)) plan.precision.activation_type = DataType::kFp32;
  if (plan.mesh.tp * plan.mesh.cp > 1 && choices.one_in(5))
    plan.precision.communication_type = DataType::kFp8;
  if (has_experts(job) && choices.one_in(4)) plan.precision.dispatch_type = DataType::kFp8;
  choose_narrow(choices, job);
  if (is_transformer(job)) {
    choose_attention_kernels(choices, plan);
    plan.loss.kernels =
        choices.pick({LossKernels::kFused, LossKernels::kInPlace, LossKernels::kSeparate});
    plan.loss.hold_logits = has_fp32_copy(plan.loss.kernels) && choices.one_in(3);
    if (choices.one_in(8)) plan.loss.metric_losses = choices.pick({1, 2});
  }
  plan.buffers.copy_inputs =
      plan.mesh.tp > 1 && !plan.tensor.sequence_parallel && choices.one_in(4);
  plan.buffers.gradient_placeholders = choices.one_in(6);
  if (is_transformer(job) && (job.model.norms.kind == NormKind::kRms || job.model.mlp.gated)) {
    plan.kernels.eager_elementwise = choices.one_in(6);
    plan.kernels.eager_gate =
        job.model.mlp.gated && !plan.kernels.eager_elementwise && choices.one_in(6);
  }
  if (may_be_frozen(job) && choices.one_in(6)) {
    plan.training.lora_rank = choices.pick({4, 16, 64});
    if (choices.one_in(2))
      plan.training.lora_modules = {choices.pick({AdapterPlace::kQkv, AdapterPlace::kMlp})};
  }
  const bool sums =
      plan.update.gradient_bytes == 4 && plan.update.hold_gradients && plan.state.zero < 2;
  if (is_transformer(job) && sums && !plan.training.lora_rank &&
      plan.precision.type != DataType::kFp32) {
    plan.update.separate_accumulation = choices.one_in(8);
  }
  plan.update.free_gradients =
      plan.update.hold_gradients && !plan.update.separate_accumulation && choices.one_in(6);
  if (may_be_packed(job) && choices.one_in(6)) {
    plan.batch.document_length = choices.between(1, plan.batch.sequence);
  }
  if (cluster.chip.communication.units > 0 && choices.one_in(6)) plan.kernels.sm_margin = 20;
  if (choices.one_in(6)) choose_launches(choices, job);
}

// Pictures in sequences, and what of their part is trained.
void choose_pictures(Choices& choices, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  if (job.model.vision.layers == 0 || choices.one_in(4)) return;
  plan.batch.vision_tokens = choices.divisor_of(plan.batch.sequence);
  if (choices.one_in(2)) {
    plan.batch.picture_tokens = choices.divisor_of(plan.batch.vision_tokens);
  }
  if (plan.is_inference() || plan.state.zero == 3) return;
  plan.training.vision =
      choices.pick({VisionTraining::kAll, VisionTraining::kProjector, VisionTraining::kNone});
}

void choose_muon(Choices& choices, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  const bool fits = plan.training.optimizer == Optimizer::kAdam && !plan.offload.optimizer &&
                    !plan.training.lora_rank && (plan.state.zero < 3 || plan.mesh.pp == 1);
  if (!fits || !choices.one_in(8)) return;
  plan.training.optimizer = Optimizer::kMuon;
  plan.update.newton_schulz_steps = choices.pick({5, 1});
  plan.update.second_moment_bytes = std::min<std::int64_t>(4, plan.update.optimizer_bytes);
}

// ---- inference ----

bool may_serve(const RandomJob& job) {
  const ModelSpec& model = job.model;
  return is_transformer(job) && model.mixer_pattern.find('X') == std::string::npos;
}

// Returns whether no layer keeps a state or keys of an indexer.
bool keeps_tokens_only(const ModelSpec& model) {
  return std::ranges::none_of(kinds_of(model), [](const BlockKind& kind) {
    return kind.has_state() || kind.mixer == Mixer::kSparse;
  });
}

// How tokens get to their experts, and what the host has to do with it.
void choose_exchange_of_pass(Choices& choices, const RandomCluster& cluster, RandomJob& job) {
  using enum Dispatch;
  ParallelPlan& plan = job.plan;
  if (plan.mesh.splits_ffn()) return;
  const bool stands_in_nodes = cluster.axes.empty() && plan.mesh.ep % cluster.node == 0;
  if (plan.mesh.ep > 1 && stands_in_nodes)
    plan.experts.dispatch = choices.pick({kAllToAll, kTwoLevel, kAuto});
  if (plan.experts.dispatch != kAllToAll && choices.one_in(3))
    plan.experts.node_limit = choices.between(1, 2);
  if (choices.one_in(4)) choose_launches(choices, job);
  if (has_experts(job) && choices.one_in(6)) plan.launches.host_reads_counts = false;
}

// Puts the experts on half of the replicas' chips.
void choose_expert_chips(Choices& choices, const RandomJob& job, ParallelPlan& plan) {
  const ExpertSpec& experts = job.model.experts;
  const bool is_even = experts.routed > 0 && experts.load.empty() && experts.capacity_factor == 0;
  if (!is_even || plan.mesh.pp * plan.mesh.cp > 1 || plan.mesh.dp == 1 || !choices.one_in(3))
    return;
  const std::int64_t chips = plan.mesh.tp * (plan.mesh.dp / 2);
  const std::int64_t sharing = choices.divisor_of(chips);
  if (experts.routed % (chips / sharing) != 0 || experts.intermediate % sharing != 0) return;
  plan.mesh.dp -= plan.mesh.dp / 2;
  plan.mesh.expert_chips = chips;
  plan.mesh.etp = sharing;
  plan.mesh.ep = chips / sharing;
  plan.tensor.sequence_parallel = plan.mesh.tp > 1;
  plan.pass.pass_microbatches = choices.between(1, 4);
}

// Replaces the plan by one of a pass on the same ranks.
void choose_inference(Choices& choices, const RandomCluster& cluster, RandomJob& job) {
  const ParallelPlan trained = std::move(job.plan);
  ParallelPlan plan;
  plan.pass.inference = choices.pick({Inference::kDecode, Inference::kPrefill});
  plan.mesh.tp = trained.mesh.tp;
  plan.mesh.pp = trained.mesh.pp;
  const bool divides = plan.pass.inference == Inference::kPrefill && trained.mesh.cp > 1 &&
                       keeps_tokens_only(job.model) && !choices.one_in(4);
  plan.mesh.cp = divides ? trained.mesh.cp : 1;
  plan.mesh.dp = trained.mesh.dp * (divides ? 1 : trained.mesh.cp);
  if (divides) {
    using enum ContextMode;
    plan.tensor.cp_mode = choices.pick({kAllGather, kZigzagRing, kRing});
  }
  plan.tensor.sequence_parallel = plan.mesh.tp > 1 && choices.one_in(3);
  plan.mesh.ep = trained.mesh.ep;
  plan.mesh.etp = trained.mesh.etp;
  if (has_experts(job) && plan.mesh.tp > 1) {
    plan.mesh.ep = 1;
    plan.mesh.etp = plan.mesh.tp;
  }
  choose_expert_chips(choices, job, plan);
  plan.mesh.order = trained.mesh.order;
  plan.mesh.allow_idle_chips = trained.mesh.allow_idle_chips;
  if (!trained.pipeline.chunks &&
      static_cast<std::int64_t>(trained.pipeline.layout.size()) == plan.mesh.pp) {
    plan.pipeline.layout = trained.pipeline.layout;
  }
  plan.precision.type = trained.precision.type;
  if (choices.one_in(3)) plan.cache.type = DataType::kFp8;
  plan.batch.global_batch = plan.mesh.dp * choices.between(1, 9);
  const std::int64_t longest =
      job.model.embedding.learned_positions > 0
          ? std::min<std::int64_t>(job.model.embedding.learned_positions, 512)
          : 512;
  const bool decodes = plan.pass.inference == Inference::kDecode;
  plan.batch.sequence = decodes ? choices.pick({1, 1, 2, 5}) : choices.between(1, longest / 2);
  if (divides)
    plan.batch.sequence = 2 * plan.mesh.cp * std::max<std::int64_t>(1, plan.batch.sequence / 16);
  plan.pass.context =
      plan.batch.sequence + (decodes || choices.one_in(2) ? choices.between(1, longest / 2) : 0);
  if (decodes && choices.one_in(3)) {
    plan.pass.prefill_tokens = choices.between(1, longest / 2);
    plan.pass.prefill_context = plan.pass.prefill_tokens + choices.between(0, longest / 2);
  }
  if (has_experts(job) && choices.one_in(3)) plan.pass.expert_spread = choices.pick({1.5, 40.0});
  const bool by_request =
      plan.mesh.tp > 1 && !plan.mesh.splits_ffn() && keeps_tokens_only(job.model);
  if (by_request && choices.one_in(3)) {
    plan.cache.split = CacheSplit::kRequests;
  }
  if (plan.mesh.cp == 1 && !plan.mesh.splits_ffn()) choose_width(choices, job.model, plan);
  complete_inference(job.model, plan);
  job.plan = std::move(plan);
  choose_exchange_of_pass(choices, cluster, job);
}

}  // namespace

void choose_keys(Choices& choices, const RandomCluster& cluster, RandomJob& job) {
  choose_recompute(choices, job);
  choose_tensor(choices, job);
  choose_context(choices, job);
  choose_messages(choices, job.plan);
  choose_sharding(choices, job.plan);
  choose_expert_keys(choices, cluster, job);
  choose_optimizer(choices, cluster, job.plan);
  choose_types(choices, cluster, job);
  if (may_serve(job) && choices.one_in(8)) choose_inference(choices, cluster, job);
}

void choose_late(Choices& choices, RandomJob& job) {
  if (!is_transformer(job)) return;
  choose_late_layers(choices, job);
  if (job.plan.recomputing.kind == Recompute::kSelective && job.model.hyper.streams > 0) {
    job.plan.recomputing.modules.push_back(RecomputeModule::kHyper);
  }
  if (job.plan.pass.inference != Inference::kDecode) choose_pictures(choices, job);
  if (!job.plan.is_inference()) choose_muon(choices, job);
}

}  // namespace stepsim
