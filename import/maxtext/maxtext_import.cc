#include "import/maxtext/maxtext_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "import/input_bytes.h"
#include "import/settings/settings_files.h"
#include "import/settings/shell_script.h"
#include "import/trainer/cluster_choice.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_fields.h"
#include "import/trainer/trainer_keys.h"
#include "proto/catalog/trainer_names.h"
#include "proto/load_experiment.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostCount = 1 << 24;
constexpr std::string_view kOfBase = "default of maxtext";  // base.yml

// Axes of the mesh, and what they divide.
enum class MeshUse : std::uint8_t {
  kDataUse,
  kShardUse,
  kTensorUse,
  kContextUse,
  kStageUse,
  kExpertUse
};
struct MeshAxis {
  std::string_view name;
  MeshUse use;
};
constexpr std::array kMeshAxes = {MeshAxis{"diloco", MeshUse::kDataUse},
                                  MeshAxis{"data", MeshUse::kDataUse},
                                  MeshAxis{"fsdp", MeshUse::kShardUse},
                                  MeshAxis{"fsdp_transpose", MeshUse::kShardUse},
                                  MeshAxis{"sequence", MeshUse::kContextUse},
                                  MeshAxis{"context", MeshUse::kContextUse},
                                  MeshAxis{"context_usp_ulysses", MeshUse::kContextUse},
                                  MeshAxis{"context_autoregressive", MeshUse::kContextUse},
                                  MeshAxis{"tensor", MeshUse::kTensorUse},
                                  MeshAxis{"tensor_transpose", MeshUse::kTensorUse},
                                  MeshAxis{"tensor_sequence", MeshUse::kTensorUse},
                                  MeshAxis{"autoregressive", MeshUse::kTensorUse},
                                  MeshAxis{"pipeline", MeshUse::kStageUse},
                                  MeshAxis{"expert", MeshUse::kExpertUse}};

// Tensors of remat_policy custom, and the result of plan.recompute_keep that each is a part of.
const std::vector<TrainerKey>& remat_tensors() {
  return keys_of_trainer("maxtext tensors").keys;
}

bool maxtext_changes_no_time(const Setting& setting) {
  const std::string value = in_small_letters(setting.shown());
  const bool is_off = value == "false" || value == "0" || value == "0.0" || value == "-1" ||
                      value == "[]" || value == "-1.0" || is_blank_value(setting.value);
  return is_off || setting.place == kOfBase || setting.key.ends_with("_for_vit") ||
         setting.key.ends_with("_placeholder") ||
         changes_no_time(keys_of_trainer("maxtext"), setting);
}

class Maxtext {
 public:
  explicit Maxtext(TrainerExperiment& made) : made_(made), s_(made.settings()) {}

  void read() {
    check_choices("maxtext", s_);
    made_.leave_listed("maxtext");
    is_gpu_ = in_small_letters(s_.text("hardware").value_or("tpu")).starts_with("gpu");
    model();
    mesh();
    if (ranks_ == 0) return;
    if (is_gpu_) {
      made_.assume("no software of the catalog: MaxText on GPUs has no entry there");
    } else {
      made_.set("software.catalog", "maxtext-tpu");
    }
    batch();
    pipeline();
    sharding();
    recompute();
    types();
    rest();
    place();
  }

 private:
  // ---- the model ----

  void model() {
    const std::string name = s_.text("model_name").value_or("default");
    const std::string known =
        made_.request().model.empty() ? maxtext_model(name) : made_.request().model;
    const bool has_shape = gives("base_emb_dim") && gives("base_num_decoder_layers");
    if (known.empty() && name != "default" && !has_shape) {
      return made_.fail("model_name",
                        fmt::format("is {}, which the catalog does not have: give its "
                                    "YAML as well (configs/models), or --model M",
                                    shortened(name)));
    }
    if (!known.empty()) {
      made_.start_from_model(known, made_.request().model.empty() ? "model_name" : "");
      changes();
    } else {
      shape(name);
    }
    if (known.empty()) return;
    const ModelSpec spec = made_.based_model(known);
    if (spec.prediction.modules > 0 && !gives("mtp_num_layers")) {
      made_.set("model.prediction_modules", std::int64_t{0});  // base.yml's mtp_num_layers
    }
    layers_ = layers_ == 0 ? spec.layers : layers_;
    has_experts_ = spec.experts.routed > 0;
  }

  // Whether a file, and not base.yml, gives the key.
  bool gives(std::string_view key) const {
    const Setting* const setting = s_.find(key);
    return setting != nullptr && setting->place != kOfBase &&
           !setting->place.starts_with("base.yml:");
  }

  // What the settings change of a model of the catalog. base.yml's sizes are of its own model.
  void changes() {
    for (const TrainerField& size : fields_of_trainer("maxtext", "sizes")) {
      const auto value = s_.integer(size.key);
      if (!value || !gives(size.key)) continue;
      if (size.path == "model.intermediate" && s_.is_true("use_double_wide_mlp")) continue;
      if (size.path == "model.layers") {
        // Gemma 2 counts pairs of layers.
        if (in_small_letters(s_.text("decoder_block").value_or("")) == "gemma2") continue;
        layers_ = *value;
      }
      made_.set(size.path, *value, size.key);
    }
    if (const auto modules = s_.integer("mtp_num_layers"); modules && gives("mtp_num_layers")) {
      made_.set("model.prediction_modules", *modules, "mtp_num_layers");
    }
    read_fields("maxtext", "capacity", made_);
    // The rest of what a model's YAML says is what the catalog has of the same model.
    for (const Setting* const setting : s_.all()) {
      if (changes_no_time(keys_of_trainer("maxtext model"), *setting)) s_.use(setting->key);
    }
    if (s_.is_true("override_model_config")) {
      made_.leave("override_model_config",
                  "sizes of experts and heads are those of the catalog: "
                  "--set model.experts.routed=N changes them");
    }
  }

  void shape(const std::string& name) {
    const std::int64_t scale = s_.integer_or("global_parameter_scale", 1);
    const auto scales = maxtext_scales(scale);
    if (!scales) {
      return made_.fail("global_parameter_scale",
                        fmt::format("must be a power of 2 up to 1048576, is {}", scale));
    }
    const auto sized = [&](const char* key, std::int64_t times, const char* field) {
      const std::int64_t base = s_.integer_or(key, 1);
      if (base < 1 || base > kMostCount) {
        made_.fail(key, fmt::format("must be 1 to {}, is {}", kMostCount, base));
        return std::int64_t{1};
      }
      made_.set(field, base * times, key);
      return base * times;
    };
    made_.set("model.name", name == "default" ? fmt::format("maxtext-{}b", scale) : name,
              "model_name");
    layers_ = sized("base_num_decoder_layers", scales->layers, "model.layers");
    sized("base_emb_dim", scales->width, "model.hidden");
    sized("base_num_query_heads", scales->heads, "model.heads");
    const std::int64_t width = sized("base_mlp_dim", scales->mlp, "model.intermediate");
    made_.set("model.vocabulary", s_.integer_or("vocab_size", 32'000), "vocab_size");
    const auto activations = s_.words("mlp_activations");
    const bool gated = !activations || activations->size() > 1;
    made_.set("model.gated_mlp", gated, "mlp_activations");
    read_fields("maxtext", "tied", made_);
    made_.set("model.norm", "rms", "decoder_block");
    const std::string of_block = block();
    read_fields("maxtext", "blocks", made_);
    const bool norms = s_.is_true("use_qk_norm");
    if (norms && of_block.find("qk_norm") == std::string::npos) {
      made_.set("model.qk_norm", true, "use_qk_norm");
    }
    const bool after_attention = s_.is_true("use_post_attn_norm");
    if (s_.is_true("use_post_ffw_norm") || after_attention)
      made_.set("model.post_norms", true, "use_post_ffw_norm");
    if (in_small_letters(s_.text("attention_type").value_or("")) == "mla") {
      read_fields("maxtext", "latent", made_);
      s_.use("base_num_kv_heads");  // latent attention has none
    } else {
      sized("base_num_kv_heads", scales->heads, "model.kv_heads");
      read_fields("maxtext", "heads", made_);
    }
    experts_of_shape(width);
    if (s_.integer_or("shared_experts", 0) == 0 && made_.draft().has("model.experts.shared_gate")) {
      made_.set("model.experts.shared_gate", false);
    }
    read_fields("maxtext", "prediction", made_);
    window();
    if (s_.is_true("use_indexer")) indexer();
    if (of_block.find("gated_delta") != std::string::npos) gated_delta();
    if (s_.is_true("share_kv_projections")) {
      made_.fail("share_kv_projections",
                 "is true: keys and values have projections of their own here");
    }
  }

  // Sets what the kind of block says, and returns it. Kinds that can't be told by such fields are
  // refused.
  std::string block() {
    const std::string kind = in_small_letters(s_.text("decoder_block").value_or("llama2"));
    const TrainerModel* const known = find_trainer_model("maxtext block", kind);
    if (known == nullptr) {
      made_.fail("decoder_block", not_accepted(kind, models_of_trainer("maxtext block")) +
                                      ": no other block is read; --model M names a model of the "
                                      "catalog that has it");
      return "";
    }
    if (kind == "gemma2") layers_ = ranks_times(layers_, 2);  // a layer of its file is two
    if (kind == "gemma2") made_.set("model.layers", layers_, "base_num_decoder_layers");
    for (const std::string_view field : split_text(known->fields, ',')) {
      const std::size_t equals = field.find('=');
      if (equals == std::string_view::npos) continue;
      made_.set("model." + std::string(field.substr(0, equals)), field.substr(equals + 1),
                "decoder_block");
    }
    return known->fields;
  }

  void window() {
    const bool is_chunked = s_.integer_or("chunk_attn_window_size", 0) > 0;
    const char* const key = is_chunked ? "chunk_attn_window_size" : "sliding_window_size";
    const bool has_pattern = made_.draft().has("model.mixer_pattern");
    const bool is_local = s_.text("attention_type") == "local_sliding";
    const std::int64_t width = s_.integer_or(key, 0);
    s_.use("sliding_window_size");
    if (width > 0 && (has_pattern || is_local)) made_.set("model.window", width, key);
    if (width > 0 && !has_pattern && !is_local) made_.leave(key, "ignored: attention is global");
  }

  void indexer() {
    made_.set("model.mixer_pattern", "I", "use_indexer");
    read_fields("maxtext", "indexer", made_);
  }

  // One layer of each cycle attends.
  void gated_delta() {
    const std::int64_t cycle = s_.integer_or("inhomogeneous_layer_cycle_interval", 1);
    constexpr std::int64_t kMostOfCycle = 1'000;
    if (cycle < 1 || cycle > kMostOfCycle) {
      return made_.fail("inhomogeneous_layer_cycle_interval", "must be 1 to 1000");
    }
    made_.set("model.mixer_pattern", std::string(static_cast<std::size_t>(cycle - 1), 'S') + "G",
              "inhomogeneous_layer_cycle_interval");
    read_fields("maxtext", "gated_delta", made_);
    s_.use("gdn_chunk_size");
  }

  void experts_of_shape(std::int64_t width) {
    const std::int64_t routed = s_.integer_or("num_experts", 1);
    if (routed <= 1) return;
    has_experts_ = true;
    const std::int64_t of_expert = s_.integer_or("base_moe_mlp_dim", -1);
    const std::int64_t each = of_expert > 0 ? of_expert : width;
    read_fields("maxtext", "experts", made_);
    read_fields("maxtext", "capacity", made_);
    made_.set("model.experts.intermediate", each, "base_moe_mlp_dim");
    const std::int64_t shared = s_.integer_or("shared_experts", 0);
    if (shared > 0 && shared <= kMostCount && each <= kMostCount) {
      made_.set("model.experts.shared_intermediate", shared * each, "shared_experts");
    }
  }

  // ---- the mesh ----

  std::int64_t axis(const std::string& key, std::int64_t otherwise) {
    const std::int64_t size = s_.integer_or(key, otherwise);
    if (size >= 1 && size <= (1 << 20)) return size;
    if (size != -1) made_.fail(key, fmt::format("must be -1 or 1 to {}, is {}", 1 << 20, size));
    return -1;
  }

  // Sizes of one of the two meshes, with what is -1 filled up. nullopt if it can't be.
  std::optional<std::vector<std::int64_t>> part(const std::string& prefix, std::int64_t all) {
    std::vector<std::int64_t> sizes;
    std::int64_t given = 1;
    std::string open;
    for (const MeshAxis& known : kMeshAxes) {
      const std::string key = prefix + std::string(known.name) + "_parallelism";
      sizes.push_back(axis(key, 1));
      if (sizes.back() != -1) {
        given = ranks_times(given, sizes.back());
        continue;
      }
      if (!open.empty()) {
        made_.fail(key, "is -1, and so is " + open + ": one of them");
        return std::nullopt;
      }
      open = key;
    }
    if (given == 0) {
      made_.fail(prefix + "tensor_parallelism", "makes too many ranks");
      return std::nullopt;
    }
    if (open.empty()) {
      if (all > 0 && given != all) {
        made_.fail(
            prefix + "fsdp_parallelism",
            fmt::format("and the other axes of {} make {}, but there are {}", prefix, given, all));
        return std::nullopt;
      }
      return sizes;
    }
    if (all <= 0) {
      made_.fail(open, "is -1, as many as there are chips: --ranks N or --cluster C says how many");
      return std::nullopt;
    }
    if (all % given != 0) {
      made_.fail(open,
                 fmt::format("is -1, but {} is no multiple of {}, the product of the other axes",
                             all, given));
      return std::nullopt;
    }
    *std::ranges::find(sizes, -1) = all / given;
    return sizes;
  }

  bool has_open_axis() {
    return std::ranges::any_of(kMeshAxes, [this](const MeshAxis& known) {
      const std::string name = std::string(known.name) + "_parallelism";
      return axis("ici_" + name, 1) == -1 || axis("dcn_" + name, 1) == -1;
    });
  }

  void mesh() {
    const std::string topology = s_.text("compile_topology").value_or("");
    const auto slice = topology.empty() ? std::nullopt : tpu_name(topology);
    std::int64_t chips = made_.request().ranks;
    slices_ = std::max<std::int64_t>(1, s_.integer_or("compile_topology_num_slices", 1));
    if (const auto told = s_.integer("num_slices"); told && *told > 0) slices_ = *told;
    if (slices_ > (1 << 20)) return made_.fail("num_slices", "is too large");
    if (chips == 0 && slice) {
      chips = ranks_times(slice->chips, slices_);
      topology_ = *slice;
    }
    if (chips == 0 && has_open_axis()) chips = made_.chips_of_cluster().value_or(0);
    // The slower network joins nodes of GPUs, or slices.
    std::int64_t joined = 1;
    bool is_open = false;
    for (const MeshAxis& known : kMeshAxes) {
      const std::int64_t size = axis("dcn_" + std::string(known.name) + "_parallelism", 1);
      if (size == -1) is_open = true;
      if (size > 0) joined = ranks_times(joined, size);
    }
    if (joined == 0) return made_.fail("dcn_data_parallelism", "makes too many ranks");
    if (joined > 1 || !is_open) slices_ = std::max(slices_, joined);
    if (chips > 0 && chips % slices_ != 0) {
      return made_.fail("dcn_data_parallelism",
                        fmt::format("{} chips don't divide into {} slices", chips, slices_));
    }
    const auto inner = part("ici_", chips / slices_);
    const auto outer = part("dcn_", slices_);
    if (!inner || !outer) return;
    for (std::size_t i = 0; i < kMeshAxes.size(); ++i) {
      const std::int64_t size = ranks_times((*inner)[i], (*outer)[i]);
      std::int64_t& product = sizes_[static_cast<std::size_t>(kMeshAxes[i].use)];
      product = ranks_times(product, size);
      if (kMeshAxes[i].name == "tensor_sequence" && size > 1) divides_tokens_ = true;
    }
    ranks_ = 1;
    for (const std::int64_t size : sizes_) ranks_ = ranks_times(ranks_, size);
    if (ranks_ == 0) return made_.fail("ici_fsdp_parallelism", "makes too many ranks");
    axes();
  }

  std::int64_t size_of(MeshUse use) const { return sizes_[static_cast<std::size_t>(use)]; }

  void axes() {
    tp_ = size_of(MeshUse::kTensorUse);
    cp_ = size_of(MeshUse::kContextUse);
    pp_ = size_of(MeshUse::kStageUse);
    shards_ = ranks_times(size_of(MeshUse::kShardUse), size_of(MeshUse::kExpertUse));
    dp_ = ranks_times(shards_, size_of(MeshUse::kDataUse));
    made_.set("plan.tp", tp_, "ici_tensor_parallelism");
    if (cp_ > 1) made_.set("plan.cp", cp_, "ici_context_parallelism");
    made_.set("plan.dp", dp_, "ici_fsdp_parallelism");
    made_.set("plan.pp", pp_, "ici_pipeline_parallelism");
    const std::int64_t ep = size_of(MeshUse::kExpertUse);
    if (ep > 1 && has_experts_) made_.set("plan.ep", ep, "ici_expert_parallelism");
    if (tp_ > 1) {
      made_.set("plan.sequence_parallel", divides_tokens_ || has_experts_,
                "ici_tensor_parallelism");
      if (!is_gpu_ && pp_ > 1) made_.set("software.overlap_tensor", false);
    } else if (!is_gpu_) {
      made_.set("software.overlap_tensor", false);  // of the software, for tensor ranks
    }
    if (cp_ > 1) read_fields("maxtext", "context", made_);
    s_.use("context_parallel_strategy");
  }

  // ---- the plan ----

  void batch() {
    const double of_chip = s_.number("per_device_batch_size").value_or(12);
    const std::int64_t steps = s_.integer_or("gradient_accumulation_steps", 1);
    const double whole = of_chip * static_cast<double>(ranks_);
    const bool is_whole =
        whole >= 1 && whole <= static_cast<double>(kMostCount) && whole == std::floor(whole);
    if (!is_whole || steps < 1 || steps > kMostCount) {
      return made_.fail("per_device_batch_size",
                        fmt::format("is {}, which on {} chips makes no whole number of sequences",
                                    of_chip, ranks_));
    }
    const auto micro_step = static_cast<std::int64_t>(whole);
    if (micro_step % dp_ != 0) {
      return made_.fail(
          "per_device_batch_size",
          fmt::format("makes {} sequences, which don't divide over {} replicas", micro_step, dp_));
    }
    made_.set("plan.global_batch", micro_step * steps, "per_device_batch_size");
    made_.set("plan.sequence", s_.integer_or("max_target_length", 2048), "max_target_length");
    std::int64_t micro = micro_step / dp_;
    if (pp_ > 1) {
      std::int64_t pieces = s_.integer_or("num_pipeline_microbatches", -1);
      if (pieces < 1) pieces = pp_;
      if (micro % pieces != 0) {
        return made_.fail("num_pipeline_microbatches",
                          fmt::format("is {}, which doesn't divide the {} sequences of a replica",
                                      pieces, micro));
      }
      micro /= pieces;
    }
    made_.set("plan.microbatch", micro, "per_device_batch_size");
  }

  // Its pipeline runs all forwards, then all backwards, in repeats that go round.
  void pipeline() {
    if (pp_ <= 1) return;
    const std::int64_t of_stage =
        std::max<std::int64_t>(1, s_.integer_or("num_layers_per_pipeline_stage", 1));
    std::int64_t repeats = s_.integer_or("num_pipeline_repeats", -1);
    if (repeats < 1) repeats = layers_ > 0 && of_stage <= layers_ ? layers_ / pp_ / of_stage : 1;
    repeats = std::max<std::int64_t>(1, repeats);
    made_.set("plan.schedule", repeats > 1 ? "breadth_first" : "gpipe", "ici_pipeline_parallelism");
    if (repeats > 1) made_.set("plan.chunks", repeats, "num_pipeline_repeats");
  }

  void sharding() {
    const bool divides = shards_ > 1 || cp_ > 1;
    made_.set("plan.zero",
              std::int64_t{divides                                   ? 3
                           : s_.is_true("shard_optimizer_over_data") ? 1
                                                                     : 0},
              "ici_fsdp_parallelism");
    if (!divides && !is_gpu_) made_.set("software.shared_master", false);
    const std::int64_t shard = ranks_times(shards_, cp_);
    if (divides && size_of(MeshUse::kDataUse) > 1)
      made_.set("plan.shard", shard, "dcn_data_parallelism");
  }

  void keep(const std::string& results, const char* key) {
    // What no backward reads is not made again, so a whole block leaves out its last matmul.
    const bool leaves_out = !is_gpu_ && !has_experts_;
    if (!results.empty()) {
      made_.set("plan.recompute", "all_but", key);
      made_.set("plan.recompute_keep", results, key);
    } else if (leaves_out) {
      made_.set("plan.recompute", "all_but", key);
      made_.set("plan.recompute_keep", "down", key);
    } else {
      made_.set("plan.recompute", "full", key);
    }
  }

  void recompute() {
    const char* const key = "remat_policy";
    const std::string policy = in_small_letters(s_.text(key).value_or("full"));
    if (policy == "none") {
      uses_tensors();
      return;
    }
    if (policy == "custom") return custom();
    uses_tensors();
    const RematPolicy* const known = find_remat_policy(policy);
    if (known == nullptr) {
      return made_.fail(key, not_accepted(policy, remat_policies()));
    }
    keep(known->keep, key);
    if (known->offloads) made_.set("plan.offload_activations", true, key);
  }

  void uses_tensors() {
    for (const TrainerKey& tensor : remat_tensors()) s_.use(tensor.name);
    s_.use("decoder_layer_input");
  }

  void custom() {
    std::string kept;
    bool offloads = false;
    for (const auto& [name, result, values] : remat_tensors()) {
      const std::string where = in_small_letters(s_.text(name).value_or("remat"));
      const std::vector<std::string> places = {"remat", "none", "device", "offload"};
      if (std::ranges::find(places, where) == places.end()) {
        made_.fail(name, not_accepted(where, places));
      }
      if (where == "remat" || where == "none") continue;
      offloads = offloads || where == "offload";
      const bool is_new =
          ("+" + kept + "+").find("+" + std::string(result) + "+") == std::string::npos;
      if (is_new && !result.empty()) kept += (kept.empty() ? "" : "+") + std::string(result);
    }
    offloads =
        offloads || in_small_letters(s_.text("decoder_layer_input").value_or("")) == "offload";
    keep(kept, "remat_policy");
    if (offloads) {
      made_.set("plan.offload_activations", true, "remat_policy");
      made_.assume("all that a block keeps goes to the host: some of it does");
    }
  }

  void types() {
    const std::string compute = in_small_letters(s_.text("dtype").value_or("bfloat16"));
    const std::string weights = in_small_letters(s_.text("weight_dtype").value_or("float32"));
    std::string type = compute == "float32" ? "fp32" : "bf16";
    std::string from = "dtype";
    const std::string quantization = in_small_letters(s_.text("quantization").value_or(""));
    if (quantization.find("fp8") != std::string::npos) {
      type = quantization.find("mxfp8") != std::string::npos ? "mxfp8" : "fp8";
      from = "quantization";
    } else if (quantization == "int8") {
      type = "int8";
      from = "quantization";
    }
    s_.use("quantization");
    made_.set("plan.dtype", type, from);
    if (weights == "bfloat16") {
      made_.set("plan.weight_dtype", "bf16", "weight_dtype");
      const bool divides = shards_ > 1 || cp_ > 1;
      if (divides && !is_gpu_) made_.set("software.shared_master", false, "weight_dtype");
      made_.set("software.optimizer_bytes", std::int64_t{4}, "weight_dtype");
    } else {
      std::int64_t bytes = 12;
      if (in_small_letters(s_.text("mu_dtype").value_or("")) == "bfloat16") bytes -= 2;
      made_.set("software.optimizer_bytes", bytes, "mu_dtype");
    }
    s_.use("grad_dtype");
  }

  void rest() {
    if (in_small_letters(s_.text("attention").value_or("")) == "dot_product" && cp_ == 1) {
      made_.set("software.fused_attention", false, "attention");
    }
    made_.set("software.clip_gradients", s_.number("gradient_clipping_threshold").value_or(1.0) > 0,
              "gradient_clipping_threshold");
    for (const char* const key :
         {"opt_type", "parameter_memory_host_offload", "custom_mesh", "custom_mesh_and_rule",
          "enable_diloco", "pipeline_parallel_layers", "attention_type"}) {
      s_.use(key);  // checked choices
    }
    if (s_.is_true("optimizer_memory_host_offload")) {
      made_.set("plan.offload_optimizer", true, "optimizer_memory_host_offload");
    }
  }

  void place() {
    if (is_gpu_) return made_.place(TrainerHardware::kGpu, ranks_);
    std::string hint;
    std::string why;
    if (!topology_.generation.empty()) {
      hint = tpu_cluster(topology_.generation, ranks_, slices_).value_or("");
      why = "the shape is assumed, " + s_.text("compile_topology").value_or("") +
            " names a number of chips";
    } else if (slices_ > 1) {
      hint = tpu_cluster("v5p", ranks_, slices_).value_or("");
      why = "no file says on what it runs";
    }
    made_.place(TrainerHardware::kTpu, ranks_, hint, why);
  }

  TrainerExperiment& made_;
  Settings& s_;
  bool is_gpu_ = false;
  bool has_experts_ = false;
  bool divides_tokens_ = false;
  std::int64_t layers_ = 0;
  std::array<std::int64_t, 6> sizes_ = {1, 1, 1, 1, 1, 1};  // by MeshUse
  std::int64_t slices_ = 1;
  TpuName topology_{};
  std::int64_t ranks_ = 0;
  std::int64_t tp_ = 1;
  std::int64_t cp_ = 1;
  std::int64_t pp_ = 1;
  std::int64_t dp_ = 1;
  std::int64_t shards_ = 1;
};

// The command with the most KEY=VALUE; of equals the last.
void read_maxtext_script(const std::string& text, const std::string& file,
                         const std::map<std::string, std::string>& given, Settings& settings,
                         std::vector<Problem>& problems) {
  const ShellScript script = read_shell_script(text, file, given, problems);
  std::vector<ShellWord> best;
  for (const ShellCommand& command : script.commands) {
    std::vector<ShellWord> pairs;
    for (const ShellWord& word : command.words) {
      if (is_override(word.text)) pairs.push_back(word);
    }
    if (!pairs.empty() && pairs.size() >= best.size()) best = std::move(pairs);
  }
  for (const ShellWord& word : best) {
    const std::size_t equals = word.text.find('=');
    settings.set({.key = word.text.substr(0, equals),
                  .name = word.text.substr(0, equals),
                  .value = word.text.substr(equals + 1),
                  .place = fmt::format("{}:{}", file, word.line)});
  }
}

bool is_script(const std::string& path, const std::string& text) {
  const bool is_yaml = path.ends_with(".yml") || path.ends_with(".yaml");
  return path.ends_with(".sh") || text.starts_with("#!") ||
         (!is_yaml && text.find("python3 -m") != std::string::npos);
}

}  // namespace

std::vector<std::string> maxtext_tensors(std::string_view result) {
  std::vector<std::string> names;
  for (const auto& [name, kept, values] : remat_tensors()) {
    if (kept == result) names.emplace_back(name);
  }
  return names;
}

Imported import_maxtext(const ImportRequest& request) {
  std::vector<Problem> problems;
  const TrainerFiles files = trainer_files(request, problems);
  throw_if_any(problems);
  Settings settings(problems);
  std::map<std::string, std::string> given;
  for (const std::string& word : files.overrides) {
    const std::size_t equals = word.find('=');
    given[word.substr(0, equals)] = word.substr(equals + 1);
  }
  for (const std::string& path : files.paths) {
    const auto text = settings_text(request, path, problems);
    if (!text) continue;
    if (is_script(path, *text)) {
      read_maxtext_script(*text, short_name(path), given, settings, problems);
    } else {
      read_yaml_settings(*text, short_name(path), settings, problems);
    }
  }
  throw_if_any(problems);
  const auto lower = [](const std::string& word) {
    return std::ranges::any_of(word.substr(0, word.find('=')),
                               [](char c) { return c >= 'a' && c <= 'z'; });
  };
  for (const std::string& word : files.overrides) {
    if (lower(word)) apply_override(word, settings);
  }
  constexpr auto kSome = std::to_array<const char*>(
      {"per_device_batch_size", "ici_fsdp_parallelism", "base_emb_dim", "model_name",
       "max_target_length", "ici_tensor_parallelism", "remat_policy", "dcn_data_parallelism"});
  if (std::ranges::none_of(kSome, [&](const char* key) { return settings.names(key); })) {
    problems.push_back({files.paths[0],
                        "has no settings of MaxText, as per_device_batch_size, "
                        "model_name and ici_fsdp_parallelism"});
    throw_if_any(problems);
  }
  return import_maxtext_settings("maxtext", {}, request, settings, problems);
}

Imported import_maxtext_settings(std::string_view kind, const TrainerKeys& keys,
                                 const ImportRequest& request, Settings& settings,
                                 std::vector<Problem>& problems) {
  TrainerExperiment made(kind, settings, request, problems);
  made.assume(set_defaults(keys, settings));
  set_defaults(keys_of_trainer("maxtext"), settings);
  Maxtext(made).read();
  return made.finish([&](const Setting& setting) {
    return changes_no_time(keys, setting) || maxtext_changes_no_time(setting);
  });
}

}  // namespace stepsim
