#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "import/exports/trainer_export.h"
#include "import/maxtext/maxtext_import.h"
#include "import/trainer/trainer_fields.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

class MaxtextSettings {
 public:
  MaxtextSettings(const Experiment& experiment, ExportedSettings& made)
      : model_(experiment.model),
        plan_(experiment.plan),
        values_(values_of(experiment)),
        // Links that take units of the chip are those of GPUs; TPUs drive theirs by DMA.
        is_gpu_(experiment.cluster.chip.communication.units > 0),
        made_(made) {}

  void set() {
    made_.set("hardware", is_gpu_ ? "gpu_multiprocess" : "tpu");
    sizes();
    attention();
    experts();
    axes();
    batch();
    pipeline();
    recompute();
    types();
    rest();
    write("reasons");
  }

 private:
  bool has_experts() const { return model_.experts.routed > 0; }
  bool is_latent() const { return model_.latent.kv_rank > 0; }

  // Blocks of MaxText that differ in what is counted here.
  const char* block() const {
    if (model_.norms.kind != NormKind::kRms) return "gpt3";
    if (is_latent() || model_.experts.first_dense > 0 || model_.experts.shared_intermediate > 0) {
      return "deepseek";
    }
    if (model_.attention.qk_norm) return has_experts() ? "qwen3_moe" : "qwen3";
    return has_experts() ? "mixtral" : "llama2";
  }

  void sizes() {
    made_.set("model_name", "default");
    made_.set("decoder_block", block());
    made_.set("global_parameter_scale", 1);
    write("sizes");
    made_.set("mlp_activations",
              model_.mlp.gated ? Json::array({"silu", "linear"}) : Json::array({"gelu"}));
    write("tied");
    write("blocks");
    write("prediction");
  }

  void attention() {
    if (is_latent()) {
      made_.set("attention_type", "mla");
      write("latent");
    } else {
      write("kv_heads");
      write("heads");
    }
    if (model_.attention.qk_norm) made_.set("use_qk_norm", true);
  }

  void experts() {
    const ExpertSpec& experts = model_.experts;
    if (!has_experts()) return;
    write("experts");
    write("capacity");
    made_.set("base_moe_mlp_dim", experts.intermediate);
    if (experts.shared_intermediate % experts.intermediate != 0) {
      made_.refuse("model.experts.shared_intermediate",
                   "MaxText has whole shared experts, each as wide as a routed one");
    }
    if (experts.shared_intermediate > 0) {
      made_.set("shared_experts", experts.shared_intermediate / experts.intermediate);
    }
  }

  void axis(const char* name, std::int64_t size) {
    made_.set("ici_" + std::string(name) + "_parallelism", size);
  }

  // Axes lie in one slice; the outer mesh is of size 1.
  void axes() {
    const Ranks& mesh = plan_.mesh;
    const bool has_zero = plan_.state.zero == 3;
    const std::int64_t shards = has_zero ? plan_.sharded_over() / mesh.cp : 1;
    const bool is_whole = !has_zero || (shards * mesh.cp == plan_.sharded_over() &&
                                        mesh.dp % shards == 0 && shards % mesh.ep == 0);
    if (!is_whole || mesh.etp > 1 || (mesh.ep > 1 && !has_zero)) {
      return made_.refuse("plan.ep",
                          "MaxText divides FSDP's ranks into experts: ep must divide "
                          "those that share state, with zero=3 and etp=1");
    }
    if (plan_.state.zero == 2 || (plan_.state.zero != 3 && mesh.cp > 1)) {
      made_.refuse("plan.zero", "is " + std::to_string(plan_.state.zero) +
                                    ": MaxText has 0, 1 and 3, with context ranks 3 alone");
    }
    made_.set("dcn_data_parallelism", 1);
    axis("data", mesh.dp / shards);
    axis("fsdp", shards / mesh.ep);
    axis("expert", mesh.ep);
    axis("context", mesh.cp);
    axis("pipeline", mesh.pp);
    // Sequence-parallel tensor ranks have an axis of their own.
    const bool divides = plan_.tensor.sequence_parallel && !has_experts();
    axis("tensor", divides ? 1 : mesh.tp);
    axis("tensor_sequence", divides ? mesh.tp : 1);
    if (plan_.state.zero == 1) made_.set("shard_optimizer_over_data", true);
    if (mesh.cp > 1) write("context");
    if (mesh.cp > 1 && plan_.tensor.cp_mode == ContextMode::kRing) {
      made_.refuse("plan.cp_mode", "is ring: MaxText's ring is zigzag_ring");
    }
  }

  // Micro-batches are turns of the pipeline, or steps whose gradients are added up.
  void batch() {
    const BatchShape& batch = plan_.batch;
    const std::int64_t steps = plan_.mesh.pp > 1 ? 1 : plan_.microbatches();
    made_.set("per_device_batch_size", static_cast<double>(batch.global_batch / steps) /
                                           static_cast<double>(plan_.mesh.ranks()));
    made_.set("gradient_accumulation_steps", steps);
    made_.set("max_target_length", batch.sequence);
  }

  void pipeline() {
    const PipelinePlan& pipeline = plan_.pipeline;
    if (plan_.mesh.pp == 1) return;
    const bool is_known = pipeline.schedule == ScheduleName::kGPipe ||
                          pipeline.schedule == ScheduleName::kBreadthFirst;
    if (!is_known || pipeline.own_schedule || pipeline.optimal_schedule) {
      return made_.refuse("plan.schedule", "is " + std::string(schedule_text(plan_.pipeline)) +
                                               ": MaxText's pipeline is gpipe, and with repeats "
                                               "breadth_first");
    }
    if (!std::ranges::all_of(pipeline.layout,
                             [&](std::int64_t n) { return n == pipeline.layout.front(); })) {
      return made_.refuse("plan.layout", "MaxText's stages have equally many layers");
    }
    const std::int64_t stages = stages_of(plan_);
    made_.set("num_pipeline_repeats", stages / plan_.mesh.pp);
    made_.set("num_layers_per_pipeline_stage", model_.layers / stages);
    made_.set("num_pipeline_microbatches", plan_.microbatches());
  }

  void recompute() {
    const RecomputePlan& again = plan_.recomputing;
    const bool is_whole = again.kind == Recompute::kFull && !again.layers && again.block == 1;
    if (again.kind == Recompute::kNone) return made_.set("remat_policy", "none");
    if (is_whole) {
      made_.set("remat_policy", "full");
      for (const char* const key : {"plan.recompute", "plan.recompute_keep"}) {
        if (is_gpu_ || has_experts()) break;
        made_.accept(key, "XLA does not make again what no backward reads: the last matmul");
      }
    } else if (again.kind == Recompute::kAllBut) {
      custom(again.keep);
    } else {
      made_.refuse("plan.recompute", "is " + std::string(name_of(again.kind)) +
                                         ": MaxText has none, full and all_but");
    }
    if (plan_.offload.activations) {
      made_.set("decoder_layer_input", "offload");
    }
  }

  void custom(const std::vector<KeptResult>& kept) {
    // On a TPU that is what remains of a full recompute.
    const bool is_full = kept == std::vector{KeptResult::kDown} && !is_gpu_ && !has_experts();
    made_.set("remat_policy", is_full ? "full" : "custom");
    if (is_full) return;
    for (const KeptResult result : kept) {
      for (const std::string& tensor : maxtext_tensors(name_of(result))) {
        made_.set(tensor, plan_.offload.activations ? "offload" : "device");
      }
    }
  }

  void types() {
    const DataType type = plan_.precision.type;
    made_.set("dtype", type == DataType::kFp32 ? "float32" : "bfloat16");
    constexpr std::int64_t kBf16State = 4;  // weights and moments, without a copy in fp32
    const bool is_narrow = plan_.update.optimizer_bytes == kBf16State;
    made_.set("weight_dtype", is_narrow ? "bfloat16" : "float32");
    if (type == DataType::kFp8 || type == DataType::kInt8 || type == DataType::kMxfp8) {
      made_.set("quantization", std::string(name_of(type)));
    } else if (type != DataType::kFp32 && type != DataType::kBf16) {
      made_.refuse("plan.dtype", "is " + std::string(name_of(type)) +
                                     ": MaxText has bf16, fp32, fp8, mxfp8 and int8");
    }
  }

  void rest() {
    if (plan_.mesh.cp == 1) {
      made_.set("attention", plan_.kernels.fused_attention ? "flash" : "dot_product");
    }
    made_.set("gradient_clipping_threshold", plan_.update.clip_gradients ? 1.0 : 0.0);
    made_.set("opt_type", "adamw");
    if (plan_.offload.optimizer) made_.set("optimizer_memory_host_offload", true);
    made_.set("dataset_type", "synthetic");
  }

  void write(std::string_view group) { write_fields("maxtext", group, values_, made_); }

  const ModelSpec& model_;
  const ParallelPlan& plan_;
  ExperimentValues values_;
  bool is_gpu_;
  ExportedSettings& made_;
};

}  // namespace

void set_maxtext_settings(const Experiment& experiment, ExportedSettings& made) {
  MaxtextSettings(experiment, made).set();
}

}  // namespace stepsim
