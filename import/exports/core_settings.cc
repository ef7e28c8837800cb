#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "import/exports/trainer_export.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_fields.h"
#include "import/trainer/trainer_keys.h"
#include "proto/catalog/trainer_names.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostProcesses = 8;  // processes that torchrun starts at most

// Writes [1]*3+[0]*2, as Megatron takes patterns of layers.
std::string python_list(std::int64_t layers, const std::function<bool(std::int64_t)>& is_one) {
  std::string text;
  for (std::int64_t begin = 0; begin < layers;) {
    std::int64_t end = begin;
    while (end < layers && is_one(end) == is_one(begin)) ++end;
    if (!text.empty()) text += '+';
    text += is_one(begin) ? "[1]*" : "[0]*";
    text += std::to_string(end - begin);
    begin = end;
  }
  return text;
}

class CoreSettings {
 public:
  CoreSettings(const Experiment& experiment, ExportedSettings& made)
      : model_(experiment.model),
        plan_(experiment.plan),
        values_(values_of(experiment)),
        made_(made) {}

  void set() {
    sizes();
    vocabulary();
    attention();
    blocks();
    experts();
    axes();
    batch();
    pipeline();
    sharding();
    recompute();
    types();
    kernels();
    optimizer();
    write("reasons");
  }

 private:
  bool has_experts() const { return model_.experts.routed > 0; }
  bool is_of(std::int64_t layer, MlpKind kind) const { return kind_of(model_, layer).mlp == kind; }
  bool has_dense_layer() const {
    for (std::int64_t layer = 0; layer < model_.layers; ++layer) {
      if (is_of(layer, MlpKind::kDense)) return true;
    }
    return false;
  }

  void sizes() {
    made_.set("num_layers", model_.layers);
    write("sizes");
    if (has_dense_layer()) made_.set("ffn_hidden_size", model_.mlp.width);
  }

  // Megatron pads to a multiple of the unit and tp; the tokenizer of nothing adds one token.
  void vocabulary() {
    std::int64_t unit = 128;
    while (unit > 1 && model_.embedding.vocabulary % (unit * plan_.mesh.tp) != 0) unit /= 2;
    made_.set("tokenizer_type", "NullTokenizer");
    made_.set("vocab_size", model_.embedding.vocabulary - 1);
    made_.set("make_vocab_size_divisible_by", unit);
  }

  void attention() {
    const AttentionSpec& attention = model_.attention;
    if (model_.latent.kv_rank > 0) {
      made_.set("multi_latent_attention", true);
      write("latent");
    } else {
      made_.set("group_query_attention", attention.kv_heads != attention.heads);
      if (attention.kv_heads != attention.heads) made_.set("num_query_groups", attention.kv_heads);
      write("heads");
    }
    windows();
    write("blocks");
    const double dropout = model_.dropout ? 0.1 : 0.0;
    made_.set("hidden_dropout", dropout);
    made_.set("attention_dropout", dropout);
    const EmbeddingSpec& embedding = model_.embedding;
    const bool learns = embedding.learned_positions > 0;
    const char* const kind = learns ? "learned_absolute" : attention.rotary ? "rope" : "none";
    made_.set("position_embedding_type", kind);
    made_.set("max_position_embeddings",
              learns ? embedding.learned_positions : plan_.batch.sequence);
  }

  void windows() {
    if (model_.attention.window == 0) return;
    made_.set("window_size", std::to_string(model_.attention.window - 1) + ",0");
    const auto is_local = [this](std::int64_t layer) {
      return kind_of(model_, layer).mixer == Mixer::kLocal;
    };
    const std::string list = python_list(model_.layers, is_local);
    if (list.find("[0]") != std::string::npos) made_.set("window_attn_skip_freq", list);
  }

  void blocks() {
    made_.set("swiglu", model_.mlp.gated);
    made_.set("add_bias_linear", model_.mlp.bias && model_.attention.bias);
    write("norm");
    write("untied");
  }

  void experts() {
    const ExpertSpec& experts = model_.experts;
    if (!has_experts()) return;
    write("experts");
    write("capacity");
    made_.set("moe_grouped_gemm", true);
    const auto has = [this](std::int64_t layer) { return is_of(layer, MlpKind::kExperts); };
    made_.set("moe_layer_freq", python_list(model_.layers, has));
    const bool deep = plan_.experts.dispatch == Dispatch::kTwoLevel;
    made_.set("moe_token_dispatcher_type", deep ? "flex" : "alltoall");
    if (deep) made_.set("moe_enable_deepep", true);
    if (plan_.overlap.expert_parallel) made_.set("overlap_moe_expert_parallel_comm", true);
    if (plan_.pieces.overlap_shared_experts && experts.shared_intermediate > 0) {
      made_.set("moe_shared_expert_overlap", true);
    }
  }

  void axes() {
    const Ranks& mesh = plan_.mesh;
    std::int64_t processes = kMostProcesses;
    while (plan_.mesh.ranks() % processes != 0) --processes;
    made_.set("nnodes", plan_.mesh.ranks() / processes);
    made_.set("nproc_per_node", processes);
    write("axes");
    if (has_experts()) {
      made_.set("expert_model_parallel_size", mesh.ep);
      made_.set("expert_tensor_parallel_size", mesh.etp);
    }
    made_.set("sequence_parallel", mesh.tp > 1 && plan_.tensor.sequence_parallel);
    if (mesh.cp == 1) return;
    write("context");
    if (plan_.tensor.cp_mode == ContextMode::kRing) {
      made_.refuse("plan.cp_mode", "is ring: Megatron's ring is zigzag_ring");
    }
  }

  void batch() {
    made_.set("micro_batch_size", plan_.batch.microbatch_size);
    made_.set("global_batch_size", plan_.batch.global_batch);
    made_.set("seq_length", plan_.batch.sequence);
  }

  void pipeline() {
    const PipelinePlan& pipeline = plan_.pipeline;
    if (plan_.mesh.pp == 1) return;
    const bool is_known = pipeline.schedule == ScheduleName::kOneForwardOneBackward ||
                          pipeline.schedule == ScheduleName::kInterleaved;
    if (!is_known || pipeline.own_schedule || pipeline.optimal_schedule) {
      return made_.refuse("plan.schedule", "is " + std::string(schedule_text(plan_.pipeline)) +
                                               ": Megatron has 1f1b and interleaved_1f1b");
    }
    const std::int64_t chunks = stages_of(plan_) / plan_.mesh.pp;
    if (!pipeline.layout.empty()) {
      made_.set("pipeline_model_parallel_layout", layout());
    } else if (chunks > 1) {
      made_.set("num_virtual_stages_per_pipeline_rank", chunks);
    }
    if (chunks > 1) made_.set("overlap_p2p_comm", plan_.overlap.pipeline);
    if (chunks > 1 && pipeline.microbatch_group) {
      made_.set("microbatch_group_size_per_vp_stage", *pipeline.microbatch_group);
    }
  }

  // "Et*3|tt|t,m|L": E the embedding, t a layer, m a module of prediction, L the loss.
  std::string layout() const {
    std::string text = "E";
    const std::vector<std::int64_t>& layers = plan_.pipeline.layout;
    for (std::size_t stage = 0; stage < layers.size(); ++stage) {
      if (stage > 0) text += '|';
      if (layers[stage] > 0) text += "t*" + std::to_string(layers[stage]);
    }
    if (model_.prediction.modules > 0) text += "m*" + std::to_string(model_.prediction.modules);
    return text + 'L';
  }

  void sharding() {
    const Sharding& state = plan_.state;
    constexpr std::array kStrategies = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    made_.set("use_distributed_optimizer", state.zero > 0);
    if (state.zero > 1) {
      made_.set("use_megatron_fsdp", true);
      made_.set("gradient_accumulation_fusion", false);  // FSDP has no main gradients to add to
      made_.set("data_parallel_sharding_strategy",
                kStrategies[static_cast<std::size_t>(state.zero)]);
    }
    if (state.zero > 0 && state.shard && *state.shard < plan_.mesh.replicas()) {
      made_.set("num_distributed_optimizer_instances", plan_.mesh.replicas() / *state.shard);
    }
    made_.set("overlap_grad_reduce", plan_.overlap.gradients);
    made_.set("overlap_param_gather", plan_.overlap.parameters);
    if (plan_.messages.gradient_bucket_parameters && state.zero < 3) {
      made_.set("ddp_bucket_size", *plan_.messages.gradient_bucket_parameters);
    }
  }

  void recompute() {
    const RecomputePlan& again = plan_.recomputing;
    if (again.kind == Recompute::kFull) {
      made_.set("recompute_granularity", "full");
      made_.set("recompute_method", again.layers ? "block" : "uniform");
      made_.set("recompute_num_layers", again.layers.value_or(again.block));
    } else if (again.kind == Recompute::kSelective) {
      made_.set("recompute_granularity", "selective");
      made_.set("recompute_modules", modules());
    } else if (again.kind != Recompute::kNone) {
      made_.refuse("plan.recompute", "is " + std::string(name_of(again.kind)) +
                                         ": Megatron has none, selective and full");
    }
  }

  // Megatron's names of the modules that blocks of this model have.
  Json modules() const {
    Json names = Json::array();
    for (const RecomputeModule module : plan_.recomputing.modules) {
      for (const std::string& name : recomputed_modules()) {
        const RecomputedModule& known = *find_recomputed_module(name);
        if (known.module == name_of(module) && has(known.needs)) {
          names.push_back(name);
          break;
        }
      }
    }
    return names;
  }

  bool has(const std::string& needs) const {
    if (needs == "experts.routed") return has_experts();
    if (needs == "latent.kv_rank") return model_.latent.kv_rank > 0;
    if (needs == "experts.shared_intermediate") return model_.experts.shared_intermediate > 0;
    return needs.empty();
  }

  void types() {
    const DataType type = plan_.precision.type;
    const bool fp16 = plan_.weights() == DataType::kFp16 || type == DataType::kFp16;
    const bool fp32 = type == DataType::kFp32;
    made_.set("bf16", !fp16 && !fp32);
    made_.set("fp16", fp16);
    if (type == DataType::kFp8 || type == DataType::kMxfp8) {
      made_.set("fp8", "hybrid");
      made_.set("fp8_recipe", fp8_recipe());
      if (plan_.weights() == DataType::kFp8) made_.set("fp8_param_gather", true);
    } else if (type == DataType::kNvfp4) {
      made_.set("fp4", "e2m1");
    } else if (!fp16 && !fp32 && type != DataType::kBf16) {
      made_.refuse("plan.dtype", "is " + std::string(name_of(type)) +
                                     ": Megatron has bf16, fp16, fp32, fp8, mxfp8 and nvfp4");
    }
    if (!fp32 && plan_.precision.activations() == DataType::kFp32) {
      made_.set("fp32_residual_connection", true);
    }
    const bool is_wide = plan_.update.gradient_bytes == 4;
    if (fp16) made_.set("accumulate_allreduce_grads_in_fp32", is_wide);
    if (!fp16 && !fp32) made_.set("grad_reduce_in_bf16", !is_wide);
  }

  const char* fp8_recipe() const {
    if (plan_.precision.type == DataType::kMxfp8) return "mxfp8";
    if (plan_.narrow.scale_block) return "blockwise";
    return plan_.narrow.current_scaling ? "tensorwise" : "delayed";
  }

  void kernels() {
    made_.set("attention_backend", plan_.kernels.fused_attention ? "flash" : "unfused");
    if (plan_.loss.kernels == LossKernels::kFused) made_.set("cross_entropy_loss_fusion", true);
    constexpr std::int64_t kPieces = 4;  // of Transformer Engine's userbuffers
    if (plan_.pieces.tensor_pieces == kPieces) made_.set("tp_comm_overlap", true);
    if (plan_.launches.cuda_graphs != CudaGraphs::kNone) {
      const bool whole = plan_.launches.cuda_graphs == CudaGraphs::kStep;
      made_.set("cuda_graph_impl", "local");
      if (whole) made_.set("cuda_graph_scope", "full_iteration");
    }
    if (plan_.offload.activations && plan_.offload.layers) {
      made_.set("cpu_offloading", true);
      made_.set("cpu_offloading_num_layers", *plan_.offload.layers);
    } else if (plan_.offload.activations) {
      made_.refuse("plan.offload_activations",
                   "Megatron takes the number of layers: plan.offload_layers=N");
    }
  }

  void optimizer() {
    made_.set("optimizer", "adam");
    made_.set("clip_grad", plan_.update.clip_gradients ? 1.0 : 0.0);
    if (plan_.offload.optimizer) made_.set("optimizer_cpu_offload", true);
    constexpr std::int64_t kNarrowMoments = 8;
    if (plan_.update.optimizer_bytes == kNarrowMoments && plan_.state.zero > 0) {
      made_.set("use_precision_aware_optimizer", true);
      made_.set("exp_avg_dtype", "bf16");
      made_.set("exp_avg_sq_dtype", "bf16");
    }
    if (plan_.training.lora_rank) {
      made_.refuse("plan.lora_rank", "adapters are no flags of pretraining");
    }
  }

  void write(std::string_view group) { write_fields("megatron", group, values_, made_); }

  const ModelSpec& model_;
  const ParallelPlan& plan_;
  ExperimentValues values_;
  ExportedSettings& made_;
};

// The first name that the importer's table has for a key; those of the launcher have none.
std::string bridge_key(const std::string& core) {
  if (core == "nnodes" || core == "nproc_per_node") return "";
  for (const TrainerKey& key : keys_of_trainer("nemo").keys) {
    if (key.becomes == core) return key.name;
  }
  return "model." + core;
}

}  // namespace

void set_core_settings(const Experiment& experiment, ExportedSettings& made) {
  CoreSettings(experiment, made).set();
}

void set_nemo_settings(const Experiment& experiment, ExportedSettings& made) {
  ExportedSettings core;
  CoreSettings(experiment, core).set();
  made.take_reasons(core);
  const bool is_latent = experiment.model.latent.kv_rank > 0;
  made.set("model._target_", is_latent ? "megatron.bridge.models.mla_provider.MLAModelProvider"
                                       : "megatron.bridge.models.gpt_provider.GPTModelProvider");
  for (const auto& [key, value] : core.all()) {
    if (key == "untie_embeddings_and_output_weights") {
      made.set("model.share_embeddings_and_output_weights", !value.get<bool>());
    } else if (key == "swiglu") {
      made.set("model.gated_linear_unit", value);
    } else if (key == "grad_reduce_in_bf16") {
      made.set("ddp.grad_reduce_in_fp32", !value.get<bool>());
    } else if (key == "seq_length") {
      made.set("model.seq_length", value);
      made.set("dataset.sequence_length", value);
    } else if (key == "window_size") {
      made.set("model.window_size", Json::array({experiment.model.attention.window - 1, 0}));
    } else if (const auto list =
                   value.is_string() ? layer_list(value.get<std::string>()) : std::nullopt) {
      made.set("model." + key, *list);
    } else if (const std::string name = bridge_key(key); !name.empty()) {
      made.set(name, value);
    }
  }
}

}  // namespace stepsim
