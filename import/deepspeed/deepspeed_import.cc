#include "import/deepspeed/deepspeed_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "import/input_bytes.h"
#include "import/settings/settings_files.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_keys.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostSequencesOfAStep = 1 << 24;

class Deepspeed {
 public:
  Deepspeed(TrainerExperiment& made, const DeepspeedOptions& options)
      : made_(made), s_(made.settings()), options_(options) {}

  void read() {
    check_choices("deepspeed", s_);
    made_.leave_listed("deepspeed");
    model();
    ranks();
    if (ranks_ == 0) return;
    if (!options_.software.empty()) made_.set("software.catalog", options_.software);
    batch();
    zero();
    types();
    activations();
    rest();
    made_.place(TrainerHardware::kGpu, ranks_);
  }

 private:
  void model() {
    const std::string given = made_.request().model;
    const std::string named = s_.text("model").value_or("");
    const std::string known = given.empty() ? catalog_model(named) : given;
    if (!options_.model_path.empty()) {
      made_.set_model_file(options_.model_path);
    } else if (known.empty()) {
      return made_.fail(named.empty() ? "MODEL" : "model",
                        named.empty() ? "must be given: the folder or config.json of the model "
                                        "behind the file, or --model M"
                                      : fmt::format("is {}, which the catalog does not have: "
                                                    "--model M names one that it has, or a "
                                                    "config.json",
                                                    shortened(named)));
    } else {
      made_.start_from_model(known, given.empty() ? "model" : "");
    }
    const bool predicts = !known.empty() && made_.based_model(known).prediction.modules > 0;
    if (!predicts && made_.draft().integer("model.prediction_modules") == 0) return;
    made_.set("model.prediction_modules", std::int64_t{0});
    made_.assume("no modules of multi-token prediction: Hugging Face's models leave them out");
  }

  std::int64_t positive(const char* key, std::int64_t otherwise) {
    const std::int64_t value = s_.integer_or(key, otherwise);
    if (value >= 1 && value <= kMostSequencesOfAStep) return value;
    made_.fail(key, fmt::format("must be 1 to {}, is {}", kMostSequencesOfAStep, value));
    return 1;
  }

  void ranks() {
    tp_ = positive("tensor_parallel.autotp_size", 1);
    if (s_.has("tensor_parallel.tp_size")) tp_ = positive("tensor_parallel.tp_size", 1);
    cp_ = positive("sequence_parallel_size", 1);
    const std::int64_t of_replica = ranks_times(tp_, cp_);
    if (of_replica == 0) return made_.fail("tensor_parallel.autotp_size", "makes too many ranks");
    const bool has_all = s_.has("train_batch_size") && s_.has("train_micro_batch_size_per_gpu") &&
                         s_.has("gradient_accumulation_steps");
    std::int64_t told = made_.request().ranks;
    for (const char* const key : {"num_processes", "nproc_per_node", "nnodes"}) s_.use(key);
    if (told == 0 && s_.has("num_processes")) told = positive("num_processes", 1);
    if (told == 0 && s_.has("nproc_per_node")) {
      told = ranks_times(positive("nproc_per_node", 1), positive("nnodes", 1));
    }
    if (told == 0 && has_all) {
      const std::int64_t all = positive("train_batch_size", 1);
      const std::int64_t steps = positive("gradient_accumulation_steps", 1);
      const std::int64_t micro = positive("train_micro_batch_size_per_gpu", 1);
      if (all % (micro * steps) != 0) {
        return made_.fail("train_batch_size",
                          fmt::format("is {}, no multiple of train_micro_batch_size_per_gpu {} x "
                                      "gradient_accumulation_steps {}",
                                      all, micro, steps));
      }
      told = ranks_times(all / (micro * steps), of_replica);
      if (told == 0) return made_.fail("train_batch_size", "makes too many ranks");
    }
    if (told == 0) {
      constexpr std::int64_t kNode = 8;
      told = common_ranks(kNode, of_replica);
      made_.assume(fmt::format(
          "{} ranks: the launcher says how many; --ranks N gives another number", told));
    }
    if (told % of_replica != 0) {
      return made_.fail(
          "tensor_parallel.autotp_size",
          fmt::format("and sequence_parallel_size make {}, which doesn't divide {} ranks",
                      of_replica, told));
    }
    ranks_ = told;
    dp_ = told / of_replica;
    made_.set("plan.tp", tp_, "tensor_parallel.autotp_size");
    made_.set("plan.dp", dp_, "train_batch_size");
    if (cp_ > 1) {
      made_.set("plan.cp", cp_, "sequence_parallel_size");
      made_.set("plan.cp_mode", "ulysses", "sequence_parallel_size");
    }
    if (tp_ > 1) made_.set("plan.sequence_parallel", false, "tensor_parallel.autotp_size");
    if (s_.is_true("tensor_parallel.tp_overlap_comm") && tp_ > 1) {
      made_.set("software.overlap_tensor", true, "tensor_parallel.tp_overlap_comm");
    }
  }

  // Two of the three give the third.
  void batch() {
    const auto all = given("train_batch_size");
    const auto micro = given("train_micro_batch_size_per_gpu");
    const auto steps = given("gradient_accumulation_steps");
    std::int64_t of_replica = micro.value_or(0);
    if (!micro && all) {
      const std::int64_t parts = dp_ * steps.value_or(1);
      if (*all % parts != 0) {
        return made_.fail(
            "train_batch_size",
            fmt::format("is {}, which doesn't divide over {} replicas and {} steps of "
                        "accumulation",
                        *all, dp_, steps.value_or(1)));
      }
      of_replica = *all / parts;
    }
    if (!micro && !all) {
      of_replica = 1;
      made_.assume("micro-batches of 1 sequence; --set plan.microbatch=N gives another number");
    }
    if (of_replica > kMostSequencesOfAStep / std::max<std::int64_t>(1, dp_)) {
      return made_.fail("train_micro_batch_size_per_gpu", "is too large");
    }
    const std::int64_t of_step = of_replica * dp_;
    if (all && micro && (*all % of_step != 0 || (steps && *all / of_step != *steps))) {
      return made_.fail(
          "train_batch_size",
          fmt::format(
              "is {}, but train_micro_batch_size_per_gpu {} x gradient_accumulation_steps {} "
              "x {} replicas make {}",
              *all, *micro, steps.value_or(1), dp_, of_step * steps.value_or(1)));
    }
    const std::int64_t accumulated = steps.value_or(1);
    if (!all && of_step > kMostSequencesOfAStep / accumulated) {
      return made_.fail("gradient_accumulation_steps", "is too large");
    }
    made_.set("plan.microbatch", of_replica, "train_micro_batch_size_per_gpu");
    made_.set("plan.global_batch", all ? *all : of_step * accumulated, "train_batch_size");
    constexpr std::int64_t kUsualSequence = 4096;
    const auto length = s_.integer("sequence_length");
    made_.set("plan.sequence", length.value_or(kUsualSequence), "sequence_length");
    made_.assume(
        length ? "sequences of the longest that is allowed: the data has shorter ones as well; "
                 "--set plan.sequence=N gives another length"
               : fmt::format("sequences of {} tokens: the data has them; --set plan.sequence=N "
                             "gives another length",
                             kUsualSequence));
  }

  std::optional<std::int64_t> given(const char* key) {
    if (!s_.has(key)) return std::nullopt;
    return positive(key, 1);
  }

  void zero() {
    const std::int64_t stage = s_.integer_or("zero_optimization.stage", 0);
    if (stage < 0 || stage > 3) {
      return made_.fail("zero_optimization.stage", fmt::format("must be 0 to 3, is {}", stage));
    }
    stage_ = stage;
    made_.set("plan.zero", stage, "zero_optimization.stage");
    const bool overlaps = s_.truth("zero_optimization.overlap_comm").value_or(stage == 3);
    if (stage == 3 || stage < 2)
      made_.set("plan.overlap_gradients", overlaps || stage == 3, "zero_optimization.overlap_comm");
    if (const auto bucket = s_.integer("zero_optimization.reduce_bucket_size");
        bucket && *bucket > 0 && stage < 3) {
      made_.set("software.gradient_bucket_parameters", *bucket,
                "zero_optimization.reduce_bucket_size");
    }
    const auto shard = s_.integer("zero_optimization.mics_shard_size");
    if (shard && *shard > 1 && stage > 0) {
      made_.set("plan.shard", *shard, "zero_optimization.mics_shard_size");
    }
    offload();
    for (const char* const key :
         {"zero_optimization.zero_hpz_partition_size", "zero_optimization.zero_quantized_weights",
          "zero_optimization.zero_quantized_gradients", "zero_optimization.offload_param.device"}) {
      s_.use(key);
    }
    for (const char* const key : {"zero_optimization.stage3_prefetch_bucket_size",
                                  "zero_optimization.stage3_max_live_parameters",
                                  "zero_optimization.stage3_max_reuse_distance",
                                  "zero_optimization.stage3_param_persistence_threshold"}) {
      if (s_.text(key) != "auto" && stage == 3) {
        made_.leave(key, "one layer is gathered ahead (plan.prefetch)");
      }
    }
  }

  void offload() {
    const auto where = [this](const char* key) {
      const std::string device = in_small_letters(s_.text(key).value_or("none"));
      return device == "none" || device.empty() ? "" : device;
    };
    const std::string state = where("zero_optimization.offload_optimizer.device");
    const bool old = s_.is_true("zero_optimization.cpu_offload");
    if ((!state.empty() || old) && stage_ > 0) {
      const char* const key =
          old ? "zero_optimization.cpu_offload" : "zero_optimization.offload_optimizer.device";
      made_.set("plan.offload_optimizer", true, key);
      made_.set("software.host_optimizer", true, key);
    }
    for (const char* const key :
         {"pin_memory", "buffer_count", "buffer_size", "max_in_cpu", "fast_init", "nvme_path",
          "ratio", "pipeline_read", "pipeline_write"}) {
      s_.use(std::string("zero_optimization.offload_optimizer.") + key);
      s_.use(std::string("zero_optimization.offload_param.") + key);
    }
  }

  bool enabled(const char* key) {
    const auto text = s_.text(key);
    if (text && *text == "auto") {
      is_auto_ = true;
      return false;
    }
    return s_.is_true(key);
  }

  void types() {
    const bool half = enabled("fp16.enabled");
    const bool brain = enabled("bf16.enabled") || enabled("bfloat16.enabled");
    std::string type = half && !brain ? "fp16" : "bf16";
    const std::string torch = s_.text("torch_type").value_or("");
    if (!half && !brain && !is_auto_) type = torch.empty() ? "fp32" : torch;
    if (s_.is_true("pure_bf16")) {  // weights and moments, without a copy in fp32
      type = "bf16";
      made_.set("software.optimizer_bytes", std::int64_t{4}, "pure_bf16");
    }
    if (!half && !brain && is_auto_) made_.assume("bf16: the type is \"auto\"");
    if (type == "fp32" && torch.empty()) made_.assume("dtype fp32: no key says bf16 or fp16");
    made_.set("plan.dtype", type, half ? "fp16.enabled" : "bf16.enabled");
    const std::string sum = in_small_letters(s_.text("data_types.grad_accum_dtype").value_or(""));
    const std::string sent = in_small_letters(s_.text("communication_data_type").value_or(""));
    const bool is_wide = type == "fp32" || sum.find("32") != std::string::npos ||
                         sent.find("32") != std::string::npos;
    made_.set("software.gradient_bytes", std::int64_t{is_wide ? 4 : 2},
              sum.empty() ? "communication_data_type" : "data_types.grad_accum_dtype");
  }

  void activations() {
    if (s_.is_true("activation_checkpointing.cpu_checkpointing")) {
      made_.set("plan.offload_activations", true, "activation_checkpointing.cpu_checkpointing");
    }
    if (const auto again = s_.truth("gradient_checkpointing")) {
      if (*again) made_.set("plan.recompute", "full", "gradient_checkpointing");
      return;
    }
    made_.assume("no recompute: the model's code decides on that; --set plan.recompute=full does");
  }

  void rest() {
    made_.set("software.clip_gradients", s_.number("gradient_clipping").value_or(0) > 0,
              "gradient_clipping");
    for (const char* const key : {"optimizer.type", "trainer_optimizer", "pipeline.stages"}) {
      s_.use(key);
    }
    constexpr std::int64_t kUsualRank = 8;
    const bool tunes = s_.text("tuner").value_or("full") == "lora";
    if (tunes && !s_.has("lora_rank")) made_.assume("lora_rank 8: the default of the software");
    const std::int64_t rank = s_.integer_or("lora_rank", kUsualRank);
    if (tunes) made_.set("plan.lora_rank", rank, "lora_rank");
    const std::string kernel = s_.text("flash_attn").value_or("auto");
    if (kernel == "disabled") made_.set("software.fused_attention", false, "flash_attn");
    if (s_.text("attn_impl") == "eager") made_.set("software.fused_attention", false, "attn_impl");
    if (s_.names("zenflow")) made_.leave("zenflow", "the optimizer waits for all gradients");
  }

  TrainerExperiment& made_;
  Settings& s_;
  const DeepspeedOptions& options_;
  std::int64_t tp_ = 1;
  std::int64_t cp_ = 1;
  std::int64_t dp_ = 0;
  std::int64_t ranks_ = 0;
  std::int64_t stage_ = 0;
  bool is_auto_ = false;
};

// The file of DeepSpeed, and what else is named: the model.
std::string split_paths(const TrainerFiles& files, std::string& model,
                        std::vector<Problem>& problems) {
  std::string settings;
  for (const std::string& path : files.paths) {
    std::error_code error;
    const bool is_model = std::filesystem::is_directory(path, error) ||
                          std::filesystem::path(path).filename() == "config.json" ||
                          !settings.empty();
    std::string& slot = is_model ? model : settings;
    if (!slot.empty()) {
      problems.push_back(
          {path, "is one file too many: the JSON of DeepSpeed, and the model's folder"});
    }
    slot = path;
  }
  if (settings.empty()) {
    problems.push_back({"FILE", "must be given: the JSON of DeepSpeed"});
  }
  return settings;
}

// "auto" is what Hugging Face's Trainer fills in.
bool has_auto(const Settings& settings) {
  return std::ranges::any_of(settings.all(),
                             [](const Setting* setting) { return setting->value == "auto"; });
}

}  // namespace

bool deepspeed_changes_no_time(const Setting& setting) {
  constexpr std::string_view kBeginnings =
      "optimizer.params scheduler steps_per_print wall_clock dump_state flops_profiler "
      "tensorboard wandb csv_monitor comet comms_logger checkpoint data_efficiency curriculum "
      "fp16. bf16. zero_allow zero_force prescale gradient_predivide aio memory_breakdown "
      "nebula elasticity autotuning logging seed load_from_fp32 zero_optimization.allgather "
      "zero_optimization.contiguous zero_optimization.round_robin zero_optimization.load_from "
      "zero_optimization.sub_group zero_optimization.stage3_gather zero_optimization.ignore "
      "zero_optimization.elastic data_types ";
  const std::string value = in_small_letters(setting.shown());
  if (value == "false" || value == "0" || value == "auto" || value == "0.0" || value == "[]" ||
      value == "{}" || is_blank_value(setting.value)) {
    return true;
  }
  return begins_with_one_of(setting.key, kBeginnings);
}

void drop_automatic(Settings& settings) {
  std::vector<Setting> open;
  for (const Setting* const setting : settings.all()) {
    const bool is_type = setting->key.ends_with(".enabled");
    if (setting->value == "auto" && !is_type) open.push_back(*setting);
  }
  for (Setting& setting : open) {
    setting.value = nullptr;
    settings.set(std::move(setting));
  }
}

void read_deepspeed_experiment(const DeepspeedOptions& options, TrainerExperiment& made) {
  Deepspeed(made, options).read();
}

Imported import_deepspeed(const ImportRequest& request) {
  std::vector<Problem> problems;
  const TrainerFiles files = trainer_files(request, problems);
  std::string model;
  const std::string path = split_paths(files, model, problems);
  throw_if_any(problems);
  Settings settings(problems);
  if (const auto text = read_settings_text(path, problems)) {
    read_json_settings(*text, short_name(path), settings, problems);
  }
  throw_if_any(problems);
  for (const std::string& word : files.overrides) apply_override(word, settings);
  const bool is_wrapped = has_auto(settings);
  drop_automatic(settings);
  constexpr auto kSome = std::to_array<const char*>(
      {"train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization.stage",
       "fp16.enabled", "bf16.enabled", "gradient_clipping", "optimizer.type",
       "gradient_accumulation_steps"});
  if (std::ranges::none_of(kSome, [&](const char* key) { return settings.names(key); })) {
    problems.push_back({path,
                        "has no settings of DeepSpeed, as train_batch_size and "
                        "zero_optimization.stage"});
    throw_if_any(problems);
  }
  TrainerExperiment made("deepspeed", settings, request, problems);
  made.assume(is_wrapped ? "software transformers-deepspeed: \"auto\" is for Hugging Face's Trainer"
                         : "software deepspeed: a model that is made before it is divided");
  read_deepspeed_experiment(
      {.software = is_wrapped ? "transformers-deepspeed" : "deepspeed", .model_path = model}, made);
  return made.finish(deepspeed_changes_no_time);
}

}  // namespace stepsim
