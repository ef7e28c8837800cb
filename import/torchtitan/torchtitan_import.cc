#include "import/torchtitan/torchtitan_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "import/settings/settings_files.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_fields.h"
#include "import/trainer/trainer_keys.h"
#include "proto/load_experiment.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostSize = 1 << 24;

class Torchtitan {
 public:
  explicit Torchtitan(TrainerExperiment& made) : made_(made), s_(made.settings()) {}

  void read() {
    check_choices("torchtitan", s_);
    made_.leave_listed("torchtitan");
    model();
    made_.set("software.catalog", "torchtitan");
    degrees();
    batch();
    if (pp_ > 1) pipeline();
    sharding();
    recompute();
    types();
    kernels();
    if (ranks_ > 0) made_.place(TrainerHardware::kGpu, ranks_);
  }

 private:
  void model() {
    if (!made_.request().model.empty()) {
      for (const char* const key : {"model.name", "model.flavor"}) s_.use(key);
      made_.start_from_model(made_.request().model, "");
    } else {
      const std::string name = s_.text("model.name").value_or("llama3");
      const std::string flavor = s_.text("model.flavor").value_or("debugmodel");
      const TrainerModel* const found = find_flavor(name, flavor);
      if (found == nullptr) {
        return made_.fail("model.flavor",
                          fmt::format("is {} {}, which is not known here; there are: {}; --model M "
                                      "names one of the catalog in its place",
                                      shortened(name), shortened(flavor),
                                      comma_separated(models_of_trainer("torchtitan"))));
      }
      if (!found->catalog.empty()) made_.start_from_model(found->catalog, "model.flavor");
      if (found->catalog.empty()) {
        made_.set("model.name", name + "-" + flavor, "model.flavor");
        made_.set("model.norm", "rms");
      }
      for (const std::string_view field : split_text(found->fields, ',')) {
        const std::size_t equals = field.find('=');
        if (equals == std::string_view::npos) continue;
        made_.set("model." + std::string(field.substr(0, equals)), field.substr(equals + 1),
                  "model.flavor");
      }
    }
    made_.set_integer("model.vocabulary", "model.vocab_size");
    const ExperimentDraft& draft = made_.draft();
    layers_ = draft.integer("model.layers");
    has_experts_ = draft.integer("model.experts.routed") > 0;
    if (const auto based = draft.find("model.catalog")) {
      const ModelSpec spec = made_.based_model(*based);
      layers_ = spec.layers;
      has_experts_ = spec.experts.routed > 0;
      if (spec.prediction.modules > 0 && !draft.has("model.prediction_modules")) {
        made_.set("model.prediction_modules", std::int64_t{0});
        made_.assume("no modules of multi-token prediction: torchtitan's models have none");
      }
    }
  }

  std::int64_t degree(const char* key, std::int64_t otherwise = 1) {
    const std::int64_t value = s_.integer_or(key, otherwise);
    if (value >= 1 && value <= (1 << 20)) return value;
    if (value == -1 && otherwise == -1) return -1;
    made_.fail(key, fmt::format("must be 1 to {}, is {}", 1 << 20, value));
    return 1;
  }

  void degrees() {
    tp_ = degree("parallelism.tensor_parallel_degree");
    pp_ = degree("parallelism.pipeline_parallel_degree");
    cp_ = degree("parallelism.context_parallel_degree");
    ep_ = has_experts_ ? degree("parallelism.expert_parallel_degree") : 1;
    etp_ = has_experts_ ? degree("parallelism.expert_tensor_parallel_degree") : 1;
    if (ep_ == 1) etp_ = 1;
    s_.use("parallelism.expert_parallel_degree");
    s_.use("parallelism.expert_tensor_parallel_degree");
    replicas_ = degree("parallelism.data_parallel_replicate_degree");
    shards_ = degree("parallelism.data_parallel_shard_degree", -1);
    const std::int64_t others = ranks_times(ranks_times(tp_, pp_), ranks_times(cp_, replicas_));
    if (others == 0) {
      return made_.fail("parallelism.tensor_parallel_degree", "makes too many ranks");
    }
    const std::int64_t told = made_.request().ranks;
    if (shards_ == -1) {
      std::int64_t all = told;
      if (all == 0) {
        constexpr std::int64_t kNode = 8;  // NGPU of torchtitan's run_train.sh
        const std::int64_t stage = common_ranks(ranks_times(tp_, cp_), ranks_times(ep_, etp_));
        all = common_ranks(kNode, ranks_times(ranks_times(stage, pp_), replicas_));
        if (all == 0)
          return made_.fail("parallelism.expert_parallel_degree", "makes too many ranks");
        made_.assume(
            fmt::format("{} ranks, the fewest that fill nodes of 8: "
                        "data_parallel_shard_degree is -1; --ranks N gives another number",
                        all));
      }
      if (all % others != 0) {
        return made_.fail(
            "parallelism.data_parallel_shard_degree",
            fmt::format("is -1, the rest of {} ranks, which are no multiple of the {} "
                        "of tp {} x cp {} x pp {} x replicas {}",
                        all, others, tp_, cp_, pp_, replicas_));
      }
      shards_ = all / others;
    } else if (told > 0 && ranks_times(shards_, others) != told) {
      return made_.fail(
          "parallelism.data_parallel_shard_degree",
          fmt::format("is {}, which makes {} ranks with tp {} x cp {} x pp {} x "
                      "replicas {}, but --ranks is {}",
                      shards_, ranks_times(shards_, others), tp_, cp_, pp_, replicas_, told));
    }
    ranks_ = ranks_times(shards_, others);
    if (ranks_ == 0) {
      return made_.fail("parallelism.data_parallel_shard_degree", "makes too many ranks");
    }
    dp_ = replicas_ * shards_;
    read_fields("torchtitan", "axes", made_);
    made_.set("plan.dp", dp_, "parallelism.data_parallel_shard_degree");
    if (ep_ > 1) read_fields("torchtitan", "expert_axes", made_);
  }

  bool is_size(const char* key, std::int64_t value) {
    if (value >= 1 && value <= kMostSize) return true;
    made_.fail(key, fmt::format("must be 1 to {}, is {}", kMostSize, value));
    return false;
  }

  void batch() {
    if (s_.has("training.num_tokens_per_microbatch_per_dp_rank")) return tokens();
    const std::int64_t local = s_.integer_or("training.local_batch_size", 8);
    const std::int64_t length = s_.integer_or("training.seq_len", 2048);
    if (!is_size("training.local_batch_size", local)) return;
    made_.set("plan.sequence", length, "training.seq_len");
    std::int64_t micro = local;
    const auto pieces = s_.integer("parallelism.pipeline_parallel_microbatches");
    const auto of_piece = s_.integer("parallelism.pipeline_parallel_microbatch_size");
    if (pp_ > 1) {
      micro = of_piece.value_or(1);
      if (!of_piece && pieces && *pieces > 0) micro = std::max<std::int64_t>(1, local / *pieces);
    }
    made_.set("plan.microbatch", micro, "training.local_batch_size");
    const std::int64_t global = s_.integer_or("training.global_batch_size", -1);
    made_.set("plan.global_batch", global > 0 ? global : local * std::max<std::int64_t>(1, dp_),
              global > 0 ? "training.global_batch_size" : "training.local_batch_size");
  }

  // Later releases count tokens of a micro-batch.
  void tokens() {
    const char* const key = "training.num_tokens_per_microbatch_per_dp_rank";
    const std::int64_t length = s_.integer_or("training.max_context_length", 2048);
    const std::int64_t of_micro = s_.integer_or(key, length);
    const std::int64_t pieces = pp_ > 1 ? s_.integer_or("parallelism.num_pp_microbatches", 1) : 1;
    s_.use("parallelism.num_pp_microbatches");
    if (length < 1 || of_micro < length || of_micro % length != 0 ||
        of_micro / length > kMostSize) {
      return made_.fail(
          key, fmt::format("must be a multiple of max_context_length {}, is {}", length, of_micro));
    }
    if (!is_size("parallelism.num_pp_microbatches", pieces)) return;
    made_.set("plan.sequence", length, "training.max_context_length");
    made_.set("plan.microbatch", of_micro / length, key);
    const std::int64_t of_step = s_.integer_or("training.num_tokens_per_train_step", -1);
    if (of_step > 0 && of_step % length != 0) {
      return made_.fail("training.num_tokens_per_train_step",
                        fmt::format("must be a multiple of {}, is {}", length, of_step));
    }
    const std::int64_t dp = std::max<std::int64_t>(1, dp_);
    const std::int64_t sequences = of_micro / length;
    if (of_step <= 0 && sequences > kMostSize / pieces) return made_.fail(key, "is too large");
    made_.set("plan.global_batch", of_step > 0 ? of_step / length : sequences * pieces * dp, key);
  }

  void pipeline() {
    const char* const key = "parallelism.pipeline_parallel_schedule";
    read_fields("torchtitan", "schedule", made_);
    const std::string schedule = made_.draft().find("plan.schedule").value_or("");
    if (schedule.empty()) {
      std::vector<std::string> names;
      for (const auto& [titan, here] : fields_of_trainer("torchtitan", "schedule")[0].values) {
        names.push_back(titan);
      }
      return made_.fail(key, not_accepted(s_.text(key).value_or(""), names));
    }
    s_.use("parallelism.pipeline_parallel_schedule_csv");
    const bool is_looped = schedule != "1f1b" && schedule != "gpipe";
    std::int64_t chunks = is_looped ? 2 : 1;
    const std::int64_t first =
        s_.integer_or("parallelism.pipeline_parallel_first_stage_less_layers", 1);
    const std::int64_t last =
        s_.integer_or("parallelism.pipeline_parallel_last_stage_less_layers", 1);
    if (const auto of_stage = s_.integer("parallelism.pipeline_parallel_layers_per_stage")) {
      const std::int64_t counted = layers_ + first + last;
      const std::int64_t stages = *of_stage > 0 ? (counted + *of_stage - 1) / *of_stage : 0;
      if (stages < pp_ || stages % pp_ != 0) {
        return made_.fail(
            "parallelism.pipeline_parallel_layers_per_stage",
            fmt::format("is {}, which makes {} stages on {} ranks", *of_stage, stages, pp_));
      }
      chunks = stages / pp_;
    }
    if (chunks > 1) made_.set("plan.chunks", chunks, key);
    const auto stages = torchtitan_layout(layers_, ranks_times(pp_, chunks), first, last);
    if (!stages) {
      return made_.fail("parallelism.pipeline_parallel_degree",
                        fmt::format("{} layers are too few for {} stages", layers_, pp_ * chunks));
    }
    const bool is_even =
        std::ranges::all_of(*stages, [&](std::int64_t count) { return count == stages->front(); });
    if (!is_even)
      made_.set("plan.layout", layout_text(*stages), "parallelism.pipeline_parallel_degree");
    s_.use("parallelism.module_fqns_per_model_part");
  }

  void sharding() {
    const bool divides = shards_ > 1 || cp_ > 1;
    const char* const key = "parallelism.fsdp_reshard_after_forward";
    const std::string when = in_small_letters(s_.text(key).value_or("default"));
    made_.set("plan.zero", std::int64_t{divides ? 3 : 0}, "parallelism.data_parallel_shard_degree");
    if (!divides) {
      // The software's keys of FSDP hold for FSDP alone.
      made_.set("software.shared_master", false);
      made_.set("software.fsdp_copies", false);
      return;
    }
    if (replicas_ > 1) {
      made_.set("plan.shard", shards_ * cp_, "parallelism.data_parallel_replicate_degree");
    }
    // By default what was gathered stays if there is a pipeline.
    if (when == "never" || (when == "default" && pp_ > 1)) {
      made_.set("plan.reshard_after_forward", false, key);
    }
  }

  void recompute() {
    std::string mode = in_small_letters(s_.text("activation_checkpoint.mode").value_or(""));
    const std::string option =
        in_small_letters(s_.text("activation_checkpoint.selective_ac_option").value_or("2"));
    if (mode.empty()) {
      // Dumps of later releases have the fields of one policy in place of its name.
      const bool has_any = s_.names("activation_checkpoint.preserve_rng_state");
      const bool by_op = s_.names("activation_checkpoint.force_recompute_mm_shapes_by_fqns");
      const bool by_budget = s_.names("activation_checkpoint.memory_budget");
      mode = by_budget ? "memory_budget" : by_op ? "op" : has_any ? "full" : "none";
      if (!has_any && !s_.names("activation_checkpoint")) mode = "selective";
    } else if (mode == "selective" && option == "op") {
      mode = "op";
    }
    const char* const key = "activation_checkpoint.mode";
    if (mode == "op") {
      made_.set("plan.recompute", "alternate", key);
    } else if (mode == "full") {
      full(key);
    } else if (mode == "selective") {
      every(option);
    } else if (mode == "memory_budget") {
      made_.fail("activation_checkpoint.memory_budget",
                 "what the compiler drops is not known here");
    }
  }

  // Checkpoints that stop early leave out a block's last matmul.
  void full(const char* key) {
    const bool stops = s_.truth("activation_checkpoint.early_stop").value_or(true);
    if (stops && !has_experts_) {
      made_.set("plan.recompute", "all_but", key);
      made_.set("plan.recompute_keep", "down", key);
    } else {
      made_.set("plan.recompute", "full", key);
    }
    if (!stops)
      made_.set("software.recomputes_as_needed", false, "activation_checkpoint.early_stop");
  }

  void every(const std::string& option) {
    const char* const key = "activation_checkpoint.selective_ac_option";
    const auto nth = number_in<std::int64_t>(option);
    if (!nth || *nth < 1) {
      return made_.fail(key, "must be op or a number, is " + shortened(option));
    }
    made_.set("plan.recompute", "full", key);
    const std::int64_t stages =
        pp_ * std::max<std::int64_t>(1, made_.draft().integer("plan.chunks"));
    const std::int64_t of_stage =
        std::max<std::int64_t>(1, layers_ / std::max<std::int64_t>(1, stages));
    if (*nth > 1) {
      made_.set("plan.recompute_layers", std::max<std::int64_t>(1, of_stage / *nth), key);
    }
  }

  bool converts(std::string_view what) {
    const auto converters = s_.words("model.converters");
    if (!converters) return false;
    return std::ranges::any_of(*converters, [&](const std::string& name) {
      return in_small_letters(name).find(what) != std::string::npos;
    });
  }

  void types() {
    const std::string param =
        in_small_letters(s_.text("training.mixed_precision_param").value_or("bfloat16"));
    const std::string state = in_small_letters(s_.text("training.dtype").value_or("float32"));
    s_.use("training.mixed_precision_reduce");
    std::string type = param == "float32" && state == "float32" ? "fp32" : "bf16";
    const bool float8 = converts("float8") || s_.is_true("float8.enable_float8_linear");
    const bool mx = converts("mx");
    const std::string recipe =
        in_small_letters(s_.text("quantize.linear.float8.recipe_name").value_or("tensorwise"));
    if (float8) {
      type = "fp8";
      if (recipe.starts_with("rowwise"))
        made_.set("software.scale_rows", true, "quantize.linear.float8.recipe_name");
      const bool gathers = s_.is_true("quantize.linear.float8.enable_fsdp_float8_all_gather");
      if (gathers && shards_ > 1) {
        made_.set("plan.weight_dtype", "fp8",
                  "quantize.linear.float8.enable_fsdp_float8_all_gather");
      }
    } else if (mx) {
      type = "mxfp8";
    }
    made_.set("plan.dtype", type,
              float8 || mx ? "model.converters" : "training.mixed_precision_param");
    if (s_.names("model_spec.model.dim") && !float8 && !mx) {
      made_.assume(
          "bf16: a dump does not tell which linear layers are quantised; --set "
          "plan.dtype=fp8 does");
    }
    if (state == "bfloat16") {  // weights, gradients and moments, without a copy in fp32
      made_.set("software.gradient_bytes", std::int64_t{2}, "training.dtype");
      made_.set("software.optimizer_bytes", std::int64_t{4}, "training.dtype");
      if (shards_ > 1 || cp_ > 1) made_.set("software.shared_master", false, "training.dtype");
    }
  }

  void kernels() {
    const bool compiles = s_.is_true("compile.enable");
    const auto parts = s_.words("compile.components");
    const auto has = [&](const char* part) {
      return compiles && (!parts || std::ranges::find(*parts, part) != parts->end());
    };
    made_.set("software.eager_elementwise", !has("model"), "compile.enable");
    if (!has("loss")) made_.set("software.loss", "separate", "compile.enable");
    if (tp_ > 1) {
      const bool divides = s_.truth("parallelism.enable_sequence_parallel").value_or(true);
      made_.set("plan.sequence_parallel", divides, "parallelism.tensor_parallel_degree");
    }
    const char* const async = "parallelism.enable_async_tensor_parallel";
    if (s_.is_true(async) && tp_ > 1) {
      if (cp_ == 1 && ep_ == 1 && pp_ == 1) {
        made_.set("software.tensor_chunks", tp_, async);
      } else {
        made_.leave(async, "collective matmuls go with tp alone here");
      }
    }
    s_.use("parallelism.enable_sequence_parallel");
    if (cp_ > 1) read_fields("torchtitan", "context", made_);
    made_.set("software.clip_gradients", s_.number("training.max_norm").value_or(1.0) > 0,
              "training.max_norm");
    if (s_.is_true("training.enable_cpu_offload")) {
      made_.set("plan.offload_optimizer", true, "training.enable_cpu_offload");
      made_.set("software.host_optimizer", true, "training.enable_cpu_offload");
      made_.leave("training.enable_cpu_offload", "weights stay on the chip");
    }
    s_.use("optimizer.name");
    for (const char* const key :
         {"parallelism.pipeline_parallel_schedule", "parallelism.fsdp_reshard_after_forward",
          "parallelism.context_parallel_rotate_method", "parallelism.enable_async_tensor_parallel",
          "parallelism.pipeline_parallel_microbatch_size", "parallelism.spmd_backend",
          "parallelism.enable_compiled_autograd", "parallelism.context_parallel_load_balancer",
          "parallelism.pipeline_parallel_first_stage_less_layers",
          "parallelism.pipeline_parallel_last_stage_less_layers", "quantize.grouped_mm.float8.fqns",
          "quantize.grouped_mm.mx.fqns", "quantize.grouped_mm.mx.recipe_name"}) {
      s_.use(key);
    }
  }

  TrainerExperiment& made_;
  Settings& s_;
  std::int64_t layers_ = 0;
  bool has_experts_ = false;
  std::int64_t tp_ = 1;
  std::int64_t pp_ = 1;
  std::int64_t cp_ = 1;
  std::int64_t ep_ = 1;
  std::int64_t etp_ = 1;
  std::int64_t replicas_ = 1;
  std::int64_t shards_ = 1;
  std::int64_t dp_ = 0;
  std::int64_t ranks_ = 0;
};

}  // namespace

std::optional<std::vector<std::int64_t>> torchtitan_layout(std::int64_t layers, std::int64_t stages,
                                                           std::int64_t embedding_weight,
                                                           std::int64_t head_weight) {
  constexpr std::int64_t kMostStages = 10'000;
  const bool is_sane = stages >= 1 && stages <= kMostStages && layers >= 1 && layers <= kMostSize &&
                       embedding_weight >= 0 && embedding_weight <= kMostSize && head_weight >= 0 &&
                       head_weight <= kMostSize;
  if (!is_sane) return std::nullopt;
  if (stages == 1) return std::vector{layers};
  const std::int64_t counted = layers + embedding_weight + head_weight;
  std::vector<std::int64_t> result;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    std::int64_t count = counted / stages + (stage < counted % stages ? 1 : 0);
    if (stage == 0) count -= embedding_weight;
    if (stage == stages - 1) count -= head_weight;
    if (count < 0) return std::nullopt;
    result.push_back(count);
  }
  return result;
}

Imported import_torchtitan(const ImportRequest& request) {
  std::vector<Problem> problems;
  Settings settings(problems);
  const TrainerFiles files = read_trainer_files(
      request, "let torchtitan dump its configuration (debug.save_config_file)", problems,
      [&](const std::string& text, const std::string& name) {
        const bool is_json = text[text.find_first_not_of(" \t\r\n")] == '{';  // none is empty
        (is_json ? read_json_settings : read_toml_settings)(text, name, settings, problems);
      });
  rename_keys(keys_of_trainer("torchtitan"), settings, problems);
  for (const std::string& word : files.overrides) apply_override(word, settings);
  const bool is_some = settings.names("model.name") || settings.names("training.seq_len") ||
                       settings.names("parallelism.tensor_parallel_degree") ||
                       settings.names("training.max_context_length") ||
                       settings.names("training.local_batch_size");
  if (!is_some) {
    problems.push_back({files.paths[0],
                        "has no settings of torchtitan, as model.flavor, "
                        "training.seq_len and parallelism.tensor_parallel_degree"});
    throw_if_any(problems);
  }
  return import_torchtitan_settings("torchtitan", {}, request, settings, problems);
}

Imported import_torchtitan_settings(std::string_view kind, const TrainerKeys& keys,
                                    const ImportRequest& request, Settings& settings,
                                    std::vector<Problem>& problems) {
  TrainerExperiment made(kind, settings, request, problems);
  made.assume(set_defaults(keys, settings));
  Torchtitan(made).read();
  return made.finish([&](const Setting& setting) {
    const std::string value = in_small_letters(setting.shown());
    return value == "false" || value == "0" || value == "[]" || is_blank_value(setting.value) ||
           changes_no_time(keys, setting) ||
           changes_no_time(keys_of_trainer("torchtitan"), setting);
  });
}

}  // namespace stepsim
