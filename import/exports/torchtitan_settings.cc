#include <algorithm>
#include <string>
#include <vector>

#include "import/exports/trainer_export.h"
#include "import/torchtitan/torchtitan_import.h"
#include "import/trainer/trainer_fields.h"
#include "proto/catalog/trainer_names.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

class TorchtitanSettings {
 public:
  TorchtitanSettings(const Experiment& experiment, ExportedSettings& made)
      : model_(experiment.model),
        plan_(experiment.plan),
        values_(values_of(experiment)),
        made_(made) {}

  void set() {
    model();
    axes();
    batch();
    if (plan_.mesh.pp > 1) pipeline();
    recompute();
    types();
    kernels();
    write("reasons");
  }

 private:
  bool has_experts() const { return model_.experts.routed > 0; }

  // Returns a size of a flavor, of its own fields or of the model of the catalog that it names.
  static std::int64_t size_of(const TrainerModel& flavor, std::string_view field,
                              std::int64_t of_catalog) {
    for (const std::string_view part : split_text(flavor.fields, ',')) {
      const std::size_t equals = part.find('=');
      if (part.substr(0, equals) != field) continue;
      return number_in<std::int64_t>(part.substr(equals + 1)).value_or(0);
    }
    return of_catalog;
  }

  bool is_this(const TrainerModel& flavor) const {
    const ModelSpec base = flavor.catalog.empty() ? ModelSpec{} : load_model(flavor.catalog);
    return size_of(flavor, "layers", base.layers) == model_.layers &&
           size_of(flavor, "hidden", base.hidden) == model_.hidden &&
           size_of(flavor, "vocabulary", base.embedding.vocabulary) ==
               model_.embedding.vocabulary &&
           size_of(flavor, "experts.routed", base.experts.routed) == model_.experts.routed &&
           size_of(flavor, "prediction_modules", base.prediction.modules) ==
               model_.prediction.modules;
  }

  // Models are those of torchtitan's registries: a name and a flavor.
  void model() {
    const std::vector<std::string> names = models_of_trainer("torchtitan");
    for (const std::string& name : names) {
      if (!is_this(*find_trainer_model("torchtitan", name))) continue;
      const std::size_t blank = name.find(' ');
      made_.set("model.name", name.substr(0, blank));
      made_.set("model.flavor", name.substr(blank + 1));
      return;
    }
    made_.refuse("model", "is none of torchtitan's: " + comma_separated(names));
  }

  void axes() {
    const Ranks& mesh = plan_.mesh;
    write("axes");
    if (has_experts()) write("expert_axes");
    sharding();
    if (mesh.tp > 1 && !plan_.tensor.sequence_parallel) {
      made_.set("parallelism.enable_sequence_parallel", false);
    }
    if (mesh.cp > 1) rotation();
  }

  void sharding() {
    const Sharding& state = plan_.state;
    const std::int64_t divided = state.zero == 0 ? 1 : plan_.sharded_over();
    const bool is_fsdp = state.zero == 3 || (state.zero == 0 && plan_.mesh.cp == 1);
    if (!is_fsdp && plan_.mesh.replicas() > 1) {
      return made_.refuse("plan.zero", "is " + std::to_string(state.zero) +
                                           ": torchtitan has FSDP, zero=3, and without context "
                                           "ranks copies, zero=0");
    }
    const std::int64_t shards = std::max<std::int64_t>(1, divided / plan_.mesh.cp);
    if (shards * (state.zero == 0 ? 1 : plan_.mesh.cp) != divided || plan_.mesh.dp % shards != 0) {
      return made_.refuse("plan.shard", "must be a multiple of cp, and divide dp x cp");
    }
    made_.set("parallelism.data_parallel_replicate_degree", plan_.mesh.dp / shards);
    made_.set("parallelism.data_parallel_shard_degree", shards);
    made_.set("parallelism.fsdp_reshard_after_forward",
              state.reshard_after_forward ? "always" : "never");
  }

  void rotation() {
    const ContextMode mode = plan_.tensor.cp_mode;
    if (mode != ContextMode::kZigzagRing && mode != ContextMode::kAllGather) {
      return made_.refuse("plan.cp_mode", "is " + std::string(name_of(mode)) +
                                              ": torchtitan has zigzag_ring and all_gather");
    }
    write("context");
  }

  void batch() {
    const BatchShape& batch = plan_.batch;
    const bool has_stages = plan_.mesh.pp > 1;
    made_.set("training.seq_len", batch.sequence);
    made_.set("training.local_batch_size",
              batch.microbatch_size * (has_stages ? plan_.microbatches() : 1));
    made_.set("training.global_batch_size", batch.global_batch);
    if (has_stages) {
      made_.set("parallelism.pipeline_parallel_microbatch_size", batch.microbatch_size);
    }
  }

  void pipeline() {
    const PipelinePlan& pipeline = plan_.pipeline;
    const std::string name(schedule_text(plan_.pipeline));
    std::vector<std::string> known;
    for (const auto& [titan, here] : fields_of_trainer("torchtitan", "schedule")[0].values) {
      if (std::ranges::find(known, here) == known.end()) known.push_back(here);
    }
    if (std::ranges::find(known, name) == known.end()) {
      return made_.refuse("plan.schedule",
                          "is " + name + ": torchtitan has " + comma_separated(known));
    }
    write("schedule");
    const std::int64_t stages = stages_of(plan_);
    std::vector<std::int64_t> layers = pipeline.layout;
    if (layers.empty()) layers.assign(static_cast<std::size_t>(stages), model_.layers / stages);
    // Without a number of layers it has two chunks a rank in the schedules that loop.
    const bool is_one = pipeline.schedule == ScheduleName::kOneForwardOneBackward ||
                        pipeline.schedule == ScheduleName::kGPipe;
    const bool is_usual = stages == plan_.mesh.pp * (is_one ? 1 : 2);
    constexpr std::int64_t kMostWeight = 4;
    for (std::int64_t first = 0; first <= kMostWeight; ++first) {
      for (std::int64_t last = 0; last <= kMostWeight; ++last) {
        const std::int64_t counted = model_.layers + first + last;
        const std::int64_t of_stage = (counted + stages - 1) / stages;
        const bool is_asked = torchtitan_layout(model_.layers, stages, first, last) == layers;
        const bool gives_stages = (counted + of_stage - 1) / of_stage == stages;
        if (!is_asked || !(is_usual || gives_stages)) continue;
        made_.set("parallelism.pipeline_parallel_first_stage_less_layers", first);
        made_.set("parallelism.pipeline_parallel_last_stage_less_layers", last);
        if (!is_usual) made_.set("parallelism.pipeline_parallel_layers_per_stage", of_stage);
        return;
      }
    }
    made_.refuse("plan.layout",
                 "torchtitan has stages alike but for layers less on the first and the last");
  }

  void recompute() {
    const RecomputePlan& again = plan_.recomputing;
    const std::string key = "activation_checkpoint.mode";
    const bool leaves_last =
        again.kind == Recompute::kAllBut && again.keep == std::vector{KeptResult::kDown};
    if (again.kind == Recompute::kNone) return made_.set(key, "none");
    if (again.kind == Recompute::kFull && again.layers) return every(*again.layers);
    if (again.kind == Recompute::kFull || leaves_last) {
      made_.set(key, "full");
      made_.set("activation_checkpoint.early_stop", leaves_last);
    } else if (again.kind == Recompute::kAlternate) {
      made_.set(key, "selective");
      made_.set("activation_checkpoint.selective_ac_option", "op");
    } else {
      made_.refuse("plan.recompute", "is " + std::string(name_of(again.kind)) +
                                         ": torchtitan has none, full, all_but with "
                                         "recompute_keep=down, and alternate");
    }
  }

  // Every n-th layer is made again, here the first of a stage.
  void every(std::int64_t layers) {
    const std::int64_t of_stage = std::max<std::int64_t>(1, model_.layers / stages_of(plan_));
    made_.set("activation_checkpoint.mode", "selective");
    made_.set("activation_checkpoint.selective_ac_option",
              std::to_string(std::max<std::int64_t>(2, of_stage / layers)));
  }

  void types() {
    const DataType type = plan_.precision.type;
    const bool fp32 = type == DataType::kFp32;
    made_.set("training.mixed_precision_param", fp32 ? "float32" : "bfloat16");
    if (type == DataType::kFp8) {
      made_.set("model.converters", Json::array({"float8"}));
      made_.set("quantize.linear.float8.recipe_name",
                plan_.narrow.scale_rows ? "rowwise" : "tensorwise");
      made_.set("quantize.linear.float8.enable_fsdp_float8_all_gather",
                plan_.weights() == DataType::kFp8);
    } else if (type == DataType::kMxfp8) {
      made_.set("model.converters", Json::array({"mx"}));
    } else if (!fp32 && type != DataType::kBf16) {
      made_.refuse("plan.dtype", "is " + std::string(name_of(type)) +
                                     ": torchtitan has bf16, fp32, fp8 and mxfp8");
    }
  }

  void kernels() {
    made_.set("compile.enable", !plan_.kernels.eager_elementwise);
    Json parts = Json::array({"model"});
    if (plan_.loss.kernels != LossKernels::kSeparate) parts.push_back("loss");
    made_.set("compile.components", std::move(parts));
    const bool is_async = plan_.mesh.tp > 1 && plan_.pieces.tensor_chunks == plan_.mesh.tp;
    if (is_async) made_.set("parallelism.enable_async_tensor_parallel", true);
    made_.set("training.max_norm", plan_.update.clip_gradients ? 1.0 : 0.0);
    if (plan_.offload.optimizer) made_.set("training.enable_cpu_offload", true);
    made_.set("optimizer.name", "AdamW");
  }

  void write(std::string_view group) { write_fields("torchtitan", group, values_, made_); }

  const ModelSpec& model_;
  const ParallelPlan& plan_;
  ExperimentValues values_;
  ExportedSettings& made_;
};

}  // namespace

void set_torchtitan_settings(const Experiment& experiment, ExportedSettings& made) {
  TorchtitanSettings(experiment, made).set();
}

}  // namespace stepsim
