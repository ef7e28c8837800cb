#include "import/megatron/core_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "import/megatron/pipeline_layout.h"
#include "import/trainer/cluster_choice.h"
#include "import/trainer/trainer_fields.h"
#include "import/trainer/trainer_keys.h"
#include "proto/catalog/trainer_names.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

class CorePlan {
 public:
  CorePlan(const CoreOptions& options, TrainerExperiment& made)
      : options_(options), made_(made), s_(made.settings()) {}

  void read() {
    check_choices("megatron", s_);
    made_.leave_listed("megatron");
    axes();
    ranks();
    read_core_model(options_, std::max<std::int64_t>(1, tp_), made_);
    if (!options_.model.empty()) based_on_ = made_.based_model(options_.model);
    if (!options_.software.empty()) made_.set("software.catalog", options_.software);
    batch();
    pipeline();
    sharding();
    recompute();
    types();
    experts();
    kernels();
    optimizer();
    if (ranks_ > 0) place();
  }

 private:
  // A number that a script may take from outside, in which case it is not known.
  std::optional<std::int64_t> known(const char* key) {
    const Setting* const setting = s_.find(key);
    if (setting == nullptr) return std::nullopt;
    const bool is_open =
        setting->value.is_string() &&
        setting->value.get_ref<const std::string&>().find('$') != std::string::npos;
    if (!is_open) return s_.integer(key);
    s_.use(key);
    return std::nullopt;
  }

  std::int64_t size(const char* key) {
    const std::int64_t value = s_.integer_or(key, 1);
    if (value >= 1 && value <= (1 << 20)) return value;
    made_.fail(key, fmt::format("must be 1 to {}, is {}", 1 << 20, value));
    return 1;
  }

  void axes() {
    tp_ = size("tensor_model_parallel_size");
    pp_ = size("pipeline_model_parallel_size");
    cp_ = size("context_parallel_size");
    ep_ = size("expert_model_parallel_size");
    read_fields("megatron", "axes", made_);
    has_experts_ = s_.integer_or("num_experts", 0) > 0 || !options_.model.empty();
    if (has_experts_ && ep_ > 1) made_.set("plan.ep", ep_, "expert_model_parallel_size");
    // Unless given, experts are divided like everything else.
    const bool is_moe = s_.integer_or("num_experts", 0) > 0 || ep_ > 1;
    etp_ = s_.has("expert_tensor_parallel_size") ? size("expert_tensor_parallel_size")
           : is_moe                              ? tp_
                                                 : 1;
    if (is_moe && etp_ > 1) made_.set("plan.etp", etp_, "expert_tensor_parallel_size");
    s_.use("transformer_pipeline_model_parallel_size");
  }

  // The ranks that the settings say, and where.
  std::pair<std::optional<std::int64_t>, std::string> told_ranks() {
    if (made_.request().ranks > 0) {
      for (const char* const key : {"world_size", "nnodes", "nproc_per_node", "num_nodes",
                                    "devices", "data_parallel_size", "script_world_size"}) {
        s_.use(key);
      }
      return {made_.request().ranks, "--ranks"};
    }
    if (const auto world = known("world_size")) return {world, "world_size"};
    const auto nodes = known("nnodes");
    const auto processes = known("nproc_per_node");
    if (nodes && processes && *nodes > 0 && *processes > 0) {
      return {ranks_times(*nodes, *processes), "nnodes"};
    }
    const auto nemo_nodes = known("num_nodes");
    const auto devices = known("devices");
    if (devices) {
      return {ranks_times(nemo_nodes.value_or(1), *devices), nemo_nodes ? "num_nodes" : "devices"};
    }
    if (const auto dp = s_.integer("data_parallel_size")) {
      return {ranks_times(*dp, model_ranks()), "data_parallel_size"};
    }
    if (const auto world = known("script_world_size")) return {world, "script_world_size"};
    return {std::nullopt, ""};
  }

  std::int64_t model_ranks() const { return ranks_times(ranks_times(tp_, pp_), cp_); }

  // The fewest that fill nodes of 8, or the fewest at all where the batch does not divide over
  // those.
  std::int64_t assumed_ranks() {
    constexpr std::int64_t kNode = 8;
    const std::int64_t stage = common_ranks(ranks_times(tp_, cp_), ranks_times(etp_, ep_));
    const std::int64_t fewest = ranks_times(stage, pp_);
    const std::int64_t of_nodes = common_ranks(kNode, fewest);
    const auto batch = s_.integer("global_batch_size");
    const std::int64_t micro = s_.integer_or("micro_batch_size", 1);
    const bool is_sane = batch && micro > 0 && micro < (1 << 24) && of_nodes > 0;
    if (is_sane && *batch % (of_nodes / model_ranks() * micro) != 0) return fewest;
    return of_nodes;
  }

  void ranks() {
    const std::int64_t of_model = model_ranks();
    if (of_model == 0) return made_.fail("tensor_model_parallel_size", "makes too many ranks");
    const auto [told, from] = told_ranks();
    std::int64_t all = 0;
    if (told) {
      all = *told;
      if (all < 1 || all % of_model != 0) {
        const std::string message = fmt::format(
            "says {} ranks, which is no multiple of the {} of tp {} x cp {} x pp {}; "
            "--ranks N says how many there are",
            all, of_model, tp_, cp_, pp_);
        return made_.fail(from, message);
      }
    } else {
      all = assumed_ranks();
      if (all == 0) return made_.fail("tensor_model_parallel_size", "makes too many ranks");
      made_.assume(
          fmt::format("{} ranks: no file says how many; --ranks N gives another number", all));
    }
    ranks_ = all;
    dp_ = all / of_model;
    const auto given = s_.integer("data_parallel_size");
    if (given && *given != dp_ && made_.request().ranks == 0) {
      return made_.fail("data_parallel_size",
                        fmt::format("is {}, but {} ranks with tp {} x cp {} x pp {} leave {}",
                                    *given, all, tp_, cp_, pp_, dp_));
    }
    made_.set("plan.dp", dp_, from == "--ranks" ? "" : from);
  }

  void batch() {
    const std::int64_t micro = s_.integer_or("micro_batch_size", 1);
    if (!s_.has("micro_batch_size")) made_.assume("micro-batches of 1 sequence");
    made_.set("plan.microbatch", micro, "micro_batch_size");
    std::optional<std::int64_t> global = s_.integer("global_batch_size");
    const auto steps = s_.words("step_batch_size_schedule");
    if (!global && steps && !steps->empty()) {
      const std::string& last = steps->back();
      global = number_in<std::int64_t>(std::string_view(last).substr(last.rfind(':') + 1));
      if (!global) {
        made_.fail("step_batch_size_schedule", "must end in TOKENS:SEQUENCES");
      } else {
        made_.assume(
            fmt::format("a global batch of {}: the last of step_batch_size_schedule", *global));
      }
    }
    if (const auto pieces = s_.integer("gradient_accumulation_steps"); pieces && !global) {
      const std::int64_t of_step = ranks_times(micro, std::max<std::int64_t>(1, dp_));
      global = ranks_times(of_step, *pieces);
      if (*global == 0) made_.fail("gradient_accumulation_steps", "makes no batch of 1 to 1048576");
    }
    if (!global && !steps) {
      global = micro >= 1 && micro <= (1 << 24) ? micro * std::max<std::int64_t>(1, dp_) : 1;
      made_.assume(fmt::format(
          "a global batch of {}: one micro-batch a replica, as Megatron assumes", *global));
    }
    if (global) made_.set("plan.global_batch", *global, "global_batch_size");
    if (s_.has("rampup_batch_size")) {
      made_.leave("rampup_batch_size", "the batch is that behind the ramp");
    }
    for (const char* const key : {"seq_length", "encoder_seq_length"}) {
      if (const auto length = s_.integer(key)) {
        return made_.set("plan.sequence", *length, key);
      }
    }
    if (!options_.model.empty()) {
      made_.assume("sequences of 4096 tokens; --set plan.sequence=N gives another");
      return made_.set("plan.sequence", std::int64_t{4096});
    }
    made_.fail("seq_length", "must be given: the settings have no such key");
  }

  void pipeline() {
    const std::int64_t layers = s_.integer_or("num_layers", based_on_.layers);
    chunks_ = 1;
    if (const auto chunks = s_.integer("virtual_pipeline_model_parallel_size")) {
      chunks_ = *chunks;
      from_ = "virtual_pipeline_model_parallel_size";
    } else if (const auto stages = s_.integer("num_virtual_stages_per_pipeline_rank")) {
      chunks_ = *stages;
      from_ = "num_virtual_stages_per_pipeline_rank";
    } else if (const auto of_chunk = s_.integer("num_layers_per_virtual_pipeline_stage")) {
      from_ = "num_layers_per_virtual_pipeline_stage";
      const std::int64_t extra = (s_.is_true("account_for_embedding_in_pipeline_split") ? 1 : 0) +
                                 (s_.is_true("account_for_loss_in_pipeline_split") ? 1 : 0);
      const std::int64_t counted = layers + extra;
      if (*of_chunk < 1 || counted % (pp_ * *of_chunk) != 0) {
        return made_.fail(from_, fmt::format("is {} layers, but {} layers on {} ranks of the "
                                             "pipeline don't divide so",
                                             *of_chunk, counted, pp_));
      }
      chunks_ = counted / pp_ / *of_chunk;
    }
    for (const char* const key :
         {"num_virtual_stages_per_pipeline_rank", "num_layers_per_virtual_pipeline_stage"}) {
      s_.use(key);  // logs have all of them
    }
    layout(layers);
    const auto overlaps = s_.truth("overlap_p2p_comm");
    s_.use("batch_p2p_comm");
    const auto group = s_.integer("microbatch_group_size_per_vp_stage");
    const std::string schedule = s_.text("pipeline_schedule").value_or("1f1b");
    if (pp_ <= 1) return;
    made_.set("plan.schedule", chunks_ > 1 ? "interleaved_1f1b" : schedule, from_);
    if (chunks_ <= 1) return;
    made_.set("plan.chunks", chunks_, from_);
    if (overlaps && !*overlaps) made_.set("plan.overlap_pipeline", false, "overlap_p2p_comm");
    if (group && *group != pp_) {
      made_.set("plan.microbatch_group", *group, "microbatch_group_size_per_vp_stage");
    }
  }

  void layout(std::int64_t layers) {
    if (const auto text = s_.text("pipeline_model_parallel_layout")) {
      const auto stages = core_layout(*text);
      const auto count = stages ? static_cast<std::int64_t>(stages->size()) : 0;
      if (!stages || count % pp_ != 0) {
        return made_.fail("pipeline_model_parallel_layout",
                          fmt::format("must have a multiple of {} stages of E, t, m and L, as in "
                                      "Et*3|(tt|)*29,m|L, is {}",
                                      pp_, shortened(*text)));
      }
      chunks_ = count / pp_;
      from_ = "pipeline_model_parallel_layout";
      if (pp_ > 1) made_.set("plan.layout", layout_text(*stages), from_);
      return;
    }
    UnevenStages stages = {.layers = layers, .pp = pp_, .chunks = chunks_};
    stages.first =
        either("decoder_first_pipeline_num_layers", "num_layers_in_first_pipeline_stage");
    stages.last = either("decoder_last_pipeline_num_layers", "num_layers_in_last_pipeline_stage");
    stages.counts_embedding = s_.is_true("account_for_embedding_in_pipeline_split");
    stages.counts_loss = s_.is_true("account_for_loss_in_pipeline_split");
    const bool is_uneven =
        stages.first || stages.last || stages.counts_embedding || stages.counts_loss;
    if (!is_uneven || pp_ <= 1 || layers <= 0) return;
    const auto found = uneven_layout(stages);
    if (!found) {
      return made_.fail("num_layers",
                        fmt::format("is {}, which doesn't divide into {} stages of {} "
                                    "chunks with the first and last as given",
                                    layers, pp_, chunks_));
    }
    made_.set("plan.layout", layout_text(*found), "num_layers");
  }

  std::optional<std::int64_t> either(const char* a, const char* b) {
    const auto first = s_.integer(a);
    const auto second = s_.integer(b);
    return first ? first : second;
  }

  void sharding() {
    const bool fsdp2 = s_.is_true("use_torch_fsdp2");
    const bool megatron_fsdp = s_.is_true("use_megatron_fsdp");
    const bool divides = s_.is_true("use_distributed_optimizer");
    zero_ = divides || is_layer_wise() ? 1 : 0;
    std::string from = divides ? "use_distributed_optimizer" : "optimizer";
    const std::string strategy =
        in_small_letters(s_.text("data_parallel_sharding_strategy").value_or("no_shard"));
    if (megatron_fsdp) {
      from = "data_parallel_sharding_strategy";
      constexpr std::string_view kStages = "no_shard optim optim_grads optim_grads_params";
      const std::vector<std::string_view> stages = words_of(kStages);
      zero_ = static_cast<int>(std::ranges::find(stages, strategy) - stages.begin()) %
              static_cast<int>(stages.size());
    } else if (fsdp2) {
      from = "use_torch_fsdp2";
      zero_ = 3;
    }
    // Software of the catalog divides unless told otherwise.
    const bool is_told = s_.has("use_distributed_optimizer");
    if (zero_ > 0 || is_told) made_.set("plan.zero", std::int64_t{zero_}, from);
    const auto instances = s_.integer("num_distributed_optimizer_instances");
    const std::int64_t replicas = ranks_times(std::max<std::int64_t>(1, dp_), cp_);
    if (instances && *instances > 1 && zero_ > 0) {
      if (replicas % *instances != 0) {
        made_.fail(
            "num_distributed_optimizer_instances",
            fmt::format("is {}, which doesn't divide the {} replicas", *instances, replicas));
      } else if (replicas / *instances > 1) {
        made_.set("plan.shard", replicas / *instances, "num_distributed_optimizer_instances");
      }
    }
    const bool overlaps = s_.is_true("overlap_grad_reduce");
    if (zero_ < 2) made_.set("plan.overlap_gradients", overlaps, "overlap_grad_reduce");
    const bool gathers = s_.is_true("overlap_param_gather");
    if (gathers && (zero_ == 1 || zero_ == 2)) {
      made_.set("plan.overlap_parameters", true, "overlap_param_gather");
    }
    for (const char* const key : {"ddp_bucket_size", "bucket_size"}) {
      if (const auto bucket = s_.integer(key); bucket && *bucket > 0 && zero_ < 3) {
        made_.set("software.gradient_bucket_parameters", *bucket, key);
      }
    }
    // NeMo's entry of the catalog is Megatron Core's with another size of buckets, which FSDP
    // lacks.
    if (zero_ == 3 && options_.software == "nemo") made_.set("software.catalog", "megatron-core");
    s_.use("outer_dp_sharding_strategy");
  }

  void recompute() {
    const std::string kind = in_small_letters(
        either_text("recompute_granularity", "activations_checkpoint_granularity"));
    const std::string method =
        in_small_letters(either_text("recompute_method", "activations_checkpoint_method"));
    const auto layers = either("recompute_num_layers", "activations_checkpoint_num_layers");
    const auto modules = s_.words("recompute_modules");
    const bool moe = s_.is_true("moe_layer_recompute");
    if (kind == "full") {
      made_.set("plan.recompute", "full", "recompute_granularity");
      if (method == "block" && layers && *layers > 0) {
        made_.set("plan.recompute_layers", *layers, "recompute_num_layers");
      } else if (layers && *layers > 1) {
        made_.set("plan.recompute_block", *layers, "recompute_num_layers");
      }
      return;
    }
    std::vector<std::string> names;
    if (kind == "selective") {
      if (modules) {
        names = *modules;
      } else {
        names = {"core_attn"};
      }
    }
    if (moe) names.emplace_back("moe");
    if (!names.empty()) selective(names);
  }

  void selective(const std::vector<std::string>& names) {
    const ExperimentDraft& draft = made_.draft();
    std::string joined;
    std::vector<std::string> unknown;
    for (const std::string& name : names) {
      const RecomputedModule* const known = find_recomputed_module(name);
      if (known == nullptr) {
        unknown.push_back(name);
        continue;
      }
      // Modules that the blocks of the model lack are never made again.
      const bool is_based = !options_.model.empty();
      if (!known->needs.empty() && draft.integer("model." + known->needs) == 0 && !is_based) {
        continue;
      }
      const std::string& here = known->module;
      if (("+" + joined + "+").find("+" + here + "+") != std::string::npos) continue;
      joined += (joined.empty() ? "" : "+") + here;
    }
    if (!unknown.empty()) {
      made_.fail("recompute_modules", not_accepted(unknown.front(), recomputed_modules()));
    }
    if (joined.empty()) return;
    made_.set("plan.recompute", "selective", "recompute_granularity");
    made_.set("plan.recompute_modules", joined, "recompute_modules");
  }

  std::string either_text(const char* a, const char* b) {
    const auto first = s_.text(a);
    const auto second = s_.text(b);
    return first ? *first : second.value_or("");
  }

  void types() {
    const std::string precision = in_small_letters(s_.text("precision").value_or(""));
    const bool is_told = s_.has("bf16") || s_.has("fp16");
    const bool half = precision.find("16") != std::string::npos;
    const bool brain = half && precision.starts_with("b");
    const bool bf16 = s_.is_true("bf16") || (!is_told && brain);
    const bool fp16 = s_.is_true("fp16") || (!is_told && half && !brain);
    if (!is_told && precision.empty()) {
      made_.assume("dtype fp32: no key says bf16 or fp16; --set plan.dtype=bf16 does");
    }
    const std::string wide = bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
    std::string type = wide;
    std::string from = bf16 ? "bf16" : "fp16";
    const bool is_fp8 = s_.has("fp8") && s_.text("fp8") != "False" && s_.text("fp8") != "false";
    const std::string recipe = in_small_letters(s_.text("fp8_recipe").value_or("delayed"));
    const bool holds_fp8 = s_.is_true("fp8_param_gather") || s_.is_true("fp8_param");
    if (is_fp8) {
      from = "fp8";
      type = recipe == "mxfp8" ? "mxfp8" : "fp8";
      if (recipe == "tensorwise") made_.set("software.current_scaling", true, "fp8_recipe");
      if (recipe == "blockwise") made_.set("software.scale_block", std::int64_t{128}, "fp8_recipe");
      if (holds_fp8 && type == "fp8") made_.set("plan.weight_dtype", "fp8", "fp8_param_gather");
      made_.leave_if_true("first_last_layers_bf16", "all layers compute in fp8 here");
      made_.leave_if_true("fp8_dot_product_attention", "attention computes in 16 bits here");
      made_.leave_if_true("fp8_multi_head_attention", "attention computes in 16 bits here");
    }
    is_blackwell_ = type == "mxfp8";
    const bool is_fp4 = s_.has("fp4") && s_.text("fp4") != "False";
    if (is_fp4) {
      from = "fp4";
      type = "nvfp4";
      is_blackwell_ = true;
    }
    made_.set("plan.dtype", type, from);
    if (type != wide && wide == "fp16") made_.set("plan.weight_dtype", "fp16", "fp16");
    if (wide == "fp16" && type != wide) made_.set("plan.activation_dtype", "fp16", "fp16");
    if (s_.is_true("fp32_residual_connection") && wide != "fp32") {
      made_.set("plan.activation_dtype", "fp32", "fp32_residual_connection");
    }
    gradients(bf16, fp16);
  }

  void gradients(bool bf16, bool fp16) {
    const auto fp32_sum = s_.truth("accumulate_allreduce_grads_in_fp32");
    const auto core = s_.truth("grad_reduce_in_fp32");
    const bool narrow = s_.is_true("grad_reduce_in_bf16");
    bool is_wide = true;
    std::string from = "grad_reduce_in_bf16";
    if (fp16) {
      is_wide = fp32_sum.value_or(false);
      from = "fp16";
    }
    if (bf16 && narrow) is_wide = false;
    if (core) {
      is_wide = *core;
      from = "grad_reduce_in_fp32";
    }
    for (const char* const key : {"main_grads_dtype", "megatron_fsdp_main_grads_dtype"}) {
      const std::string type = in_small_letters(s_.text(key).value_or(""));
      if (type.find("16") != std::string::npos) {
        is_wide = false;
        from = key;
      }
    }
    made_.set("software.gradient_bytes", std::int64_t{is_wide ? 4 : 2}, from);
  }

  void experts() {
    const bool is_moe = s_.integer_or("num_experts", 0) > 0 || based_on_.experts.routed > 0;
    const std::string dispatcher =
        in_small_letters(s_.text("moe_token_dispatcher_type").value_or(is_moe ? "allgather" : ""));
    const bool deep = dispatcher == "flex" || s_.is_true("moe_enable_deepep");
    const bool shared = s_.is_true("moe_shared_expert_overlap");
    const bool overlap = s_.is_true("overlap_moe_expert_parallel_comm");
    if (!is_moe) return leave_experts();
    if (deep && ep_ > 1) made_.set("plan.dispatch", "two_level", "moe_token_dispatcher_type");
    if (dispatcher == "allgather" && ep_ > 1) {
      if (s_.has("moe_token_dispatcher_type")) {
        made_.leave("moe_token_dispatcher_type", "tokens travel in all-to-alls here");
      } else {
        made_.assume(
            "all-to-alls of tokens: Megatron's default dispatcher, allgather, has no "
            "counterpart");
      }
    }
    const bool has_shared = made_.draft().integer("model.experts.shared_intermediate") > 0 ||
                            based_on_.experts.shared_intermediate > 0;
    if (shared && has_shared && ep_ > 1 && tp_ == 1 && !overlap) {
      made_.set("software.overlap_shared_experts", true, "moe_shared_expert_overlap");
    } else if (shared) {
      made_.leave("moe_shared_expert_overlap",
                  has_shared ? "shared experts overlap with ep above 1 and tp 1 alone here"
                             : "Megatron ignores it: the model has no shared experts");
    }
    if (overlap && ep_ > 1 && zero_ < 3) {
      made_.set("plan.overlap_expert_parallel", true, "overlap_moe_expert_parallel_comm");
    } else if (overlap) {
      made_.leave("overlap_moe_expert_parallel_comm", "of no effect with ep 1 or FSDP here");
    }
    s_.use("moe_flex_dispatcher_backend");
    if (is_moe && tp_ > 1) made_.set("plan.sequence_parallel", true, "sequence_parallel");
  }

  // What a model without experts ignores.
  void leave_experts() {
    for (const char* const key :
         {"moe_token_dispatcher_type", "moe_enable_deepep", "moe_shared_expert_overlap",
          "overlap_moe_expert_parallel_comm", "moe_router_topk", "moe_layer_freq",
          "moe_flex_dispatcher_backend", "moe_expert_capacity_factor"}) {
      const Setting* const setting = s_.find(key);
      const bool is_default = setting == nullptr || setting->place.starts_with("default of");
      if (is_default) s_.use(key);
      if (!is_default) made_.leave_unless(key, "none", "ignored: the model has no experts");
    }
    if (ep_ > 1) made_.fail("expert_model_parallel_size", "needs a model with experts");
  }

  void kernels() {
    const bool sequence = s_.is_true("sequence_parallel");
    if (tp_ > 1 && !made_.draft().has("plan.sequence_parallel")) {
      made_.set("plan.sequence_parallel", sequence, "sequence_parallel");
    }
    const std::string attention = in_small_letters(s_.text("attention_backend").value_or(""));
    const bool unfused = attention.find("unfused") != std::string::npos ||
                         attention.find("local") != std::string::npos;
    if (unfused && cp_ == 1) made_.set("software.fused_attention", false, "attention_backend");
    for (const char* const key : {"use_flash_attn", "use_flash_attention"}) {
      if (const auto flash = s_.truth(key); flash && *flash)
        made_.set("software.fused_attention", true, key);
    }
    if (cp_ > 1) context();
    // "native" sums in fp32 without a copy, as "te" does.
    if (s_.is_true("cross_entropy_loss_fusion")) {
      made_.set("software.loss", "fused", "cross_entropy_loss_fusion");
    }
    const bool tp_overlap = s_.is_true("tp_comm_overlap") || s_.is_true("ub_tp_comm_overlap");
    if (tp_overlap && tp_ > 1) {
      // Transformer Engine scatters in four pieces unless its own configuration says otherwise.
      const bool exchanges_tokens = sequence && !s_.has("peft.dim");  // adapters have their own
      const char* const key = s_.has("tp_comm_overlap") ? "tp_comm_overlap" : "ub_tp_comm_overlap";
      if (exchanges_tokens) {
        made_.set("software.tensor_pieces", std::int64_t{4}, key);
      } else {
        made_.set("software.overlap_tensor", true, key);
        made_.leave(key,
                    "input gradients are reduced beside weight gradients; without "
                    "sequence_parallel, or with adapters, nothing is exchanged in pieces");
      }
    }
    graphs();
    if (s_.is_true("cpu_offloading") && s_.integer_or("cpu_offloading_num_layers", 0) > 0) {
      made_.set("plan.offload_activations", true, "cpu_offloading");
      made_.set("plan.offload_layers", s_.integer_or("cpu_offloading_num_layers", 1),
                "cpu_offloading_num_layers");
    }
    for (const char* const key :
         {"cp_comm_type", "linear_attention_freq", "linear_conv_kernel_dim", "linear_key_head_dim",
          "linear_value_head_dim", "linear_num_key_heads", "linear_num_value_heads"}) {
      s_.use(key);  // of one context rank, or of a variant of attention that is listed
    }
  }

  void context() {
    read_fields("megatron", "context", made_);
    if (made_.draft().has("plan.cp_mode")) return;
    made_.set("plan.cp_mode", "zigzag_ring", "cp_comm_type");
    if (s_.has("cp_comm_type")) made_.leave("cp_comm_type", "keys and values go round a ring");
  }

  void graphs() {
    const std::string kind = in_small_letters(s_.text("cuda_graph_impl").value_or("none"));
    const std::string scope = in_small_letters(s_.text("cuda_graph_scope").value_or(""));
    const bool old = s_.is_true("enable_cuda_graph") || s_.is_true("external_cuda_graph");
    if (options_.software.empty() || (kind == "none" && !old)) return;
    const bool whole = kind == "full_iteration" || scope == "full_iteration";
    made_.set("software.cuda_graphs", whole ? "step" : "blocks", "cuda_graph_impl");
    if (whole && made_.draft().integer("model.experts.routed") > 0) {
      made_.set("software.host_reads_counts", false, "cuda_graph_impl");
    }
  }

  static std::int64_t bytes_of(const std::string& type) {
    if (type.find("8") != std::string::npos) return 1;
    return type.find("16") != std::string::npos ? 2 : 4;
  }

  // Megatron Core's layer-wise distributed optimizer: whole matrices belong to replicas.
  bool is_layer_wise() const {
    return in_small_letters(s_.text("optimizer").value_or("")) == "dist_muon";
  }

  void muon() {
    made_.set("plan.optimizer", "muon", "optimizer");
    if (const auto steps = s_.integer("muon_num_ns_steps")) {
      made_.set("software.newton_schulz_steps", *steps, "muon_num_ns_steps");
    }
    made_.leave_unless("muon_tp_mode", "blockwise",
                       "a tensor rank's part of a matrix is made orthogonal by itself here");
  }

  void optimizer() {
    const double clip = s_.number("clip_grad").value_or(1.0);
    made_.set("software.clip_gradients", clip > 0, "clip_grad");
    const std::string name = in_small_letters(s_.text("optimizer").value_or("adam"));
    if (name == "sgd") {
      made_.set("software.optimizer_bytes", std::int64_t{8}, "optimizer");
    } else if (name == "muon" || name == "dist_muon") {
      muon();
    }
    // Adapters, under ms-swift's names and NeMo's.
    constexpr std::int64_t kUsualRank = 8;
    const bool tunes = s_.text("tuner").value_or("full") != "full";
    if (tunes && !s_.has("lora_rank")) made_.assume("lora_rank 8: ms-swift's default");
    const std::int64_t rank = s_.integer_or("lora_rank", kUsualRank);
    if (tunes) made_.set("plan.lora_rank", rank, "lora_rank");
    if (s_.is_true("use_precision_aware_optimizer")) {
      std::int64_t bytes = 0;
      for (const char* const key : {"main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"}) {
        bytes += bytes_of(in_small_letters(s_.text(key).value_or("fp32")));
      }
      made_.set("software.optimizer_bytes", bytes, "use_precision_aware_optimizer");
    }
    if (s_.is_true("optimizer_cpu_offload")) {
      made_.set("plan.offload_optimizer", true, "optimizer_cpu_offload");
      made_.set("software.host_optimizer", true, "optimizer_cpu_offload");
      const double part = s_.number("optimizer_offload_fraction").value_or(1.0);
      if (part < 1.0) made_.leave("optimizer_offload_fraction", "all of the state is on the host");
    }
  }

  void place() {
    const std::string hint =
        is_blackwell_ ? gpu_cluster(ranks_, "dgx-b200").value_or("") : std::string();
    made_.place(TrainerHardware::kGpu, ranks_, hint, "the chip must have the type of the matmuls");
  }

  const CoreOptions& options_;
  TrainerExperiment& made_;
  Settings& s_;
  std::int64_t tp_ = 1;
  std::int64_t pp_ = 1;
  std::int64_t cp_ = 1;
  std::int64_t ep_ = 1;
  std::int64_t etp_ = 1;
  std::int64_t dp_ = 0;
  std::int64_t ranks_ = 0;
  std::int64_t chunks_ = 1;
  std::string from_{};  // the key that says how many chunks
  int zero_ = 0;
  bool has_experts_ = false;
  bool is_blackwell_ = false;
  ModelSpec based_on_{};  // of the catalog; without experts if there is none
};

}  // namespace

void read_core_experiment(const CoreOptions& options, TrainerExperiment& made) {
  CorePlan(options, made).read();
}

bool core_changes_no_time(const Setting& setting) {
  const std::string value = in_small_letters(setting.shown());
  const bool is_off = value == "false" || value == "none" || value == "0" || value == "0.0" ||
                      value == "[]" || value == "" || value == "null";
  return is_off || changes_no_time(keys_of_trainer("megatron"), setting);
}

Imported import_core_of_hub(const std::string& kind, const TrainerKeys& keys, Settings& settings,
                            const ImportRequest& request, std::vector<Problem>& problems) {
  TrainerExperiment made(kind, settings, request, problems);
  CoreOptions options = {.model = request.model, .model_from = "", .prediction_by_flag = true};
  if (const auto named = settings.text("model"); named && options.model.empty()) {
    options.model = catalog_model(*named);
    options.model_from = "model";
    if (options.model.empty()) {
      settings.fail("model", fmt::format("is {}, which the catalog does not have: --model M names "
                                         "one that it has, or a config.json",
                                         shortened(*named)));
    }
  } else if (!named && options.model.empty() && !settings.has("num_layers")) {
    settings.fail("model", "must be given: --model M names one of the catalog, or a config.json");
  }
  throw_if_any(problems);
  const bool has_experts =
      settings.has("num_experts") ||
      (!options.model.empty() && made.based_model(options.model).experts.routed > 0);
  made.assume(set_defaults(keys, settings, has_experts));
  if (settings.is_true("moe_enable_deepep")) options.software = "megatron-core-deepep";
  read_core_experiment(options, made);
  return made.finish([&](const Setting& setting) {
    return changes_no_time(keys, setting) || core_changes_no_time(setting);
  });
}

}  // namespace stepsim
