// Models in which layers have a state of a delta rule or of lightning attention, or a short
// convolution.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "proto/hugging_face/families/families.h"
#include "proto/hugging_face/families/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

std::string linear_pattern(Config& config, const file::Model& model) {
  const std::string letters = layer_letters(config, model, "layer_types",
                                            {{"linear_attention", 'S'}, {"full_attention", 'G'}});
  const std::int64_t period = config.period_or("full_attention_interval", "mixer_pattern", 4);
  if (!letters.empty()) return letters;
  return layers_where(
      model, [period](std::int64_t layer) { return period > 0 && (layer + 1) % period == 0; }, 'G',
      'S');
}

// Gated delta net in most layers, gated attention in every fourth.
void read_qwen3_next(Config& config, file::Model& model) {
  read_decoder(config, model, {.head_dim = 256});
  model.set_qk_norm(true);
  model.set_attention_gate("value");
  model.set_attention_bias(config.flag_or("attention_bias", false));
  config.flag_or("attn_output_gate", true);
  model.set_mixer_pattern(linear_pattern(config, model));
  read_gated_delta(config, model);
  model.set_prediction_modules(config.count_or("mtp_num_hidden_layers", "prediction_modules", 1));
  if (!config.has("num_experts")) {
    read_dense_mlp(config, model);
    return;
  }
  read_experts(config, model);
  file::Experts& experts = *model.mutable_experts();
  experts.set_shared_intermediate(
      config.size("shared_expert_intermediate_size", "experts.shared_intermediate"));
  experts.set_shared_gate(true);
  read_sparse_layers(config, model);
}

// Kimi's delta attention in most layers, latent attention in the others. The file counts layers
// from 1.
void read_kimi_linear(Config& config, file::Model& model) {
  read_decoder(config, model, {.head_dim = 1});
  read_latent(config, model);
  model.set_rotary(!config.flag_or("mla_use_nope", false));
  Config linear = config.nested("linear_attn_config");
  const std::vector<std::int64_t> full = linear.layers("full_attn_layers", 1, model.layers());
  const std::vector<std::int64_t> delta = linear.layers("kda_layers", 1, model.layers());
  const std::set<std::int64_t> listed(full.begin(), full.end());
  for (const std::int64_t layer : delta) {
    linear.refuse_if(listed.contains(layer), "kda_layers",
                     "lists layer " + std::to_string(layer) + ", as full_attn_layers does");
  }
  const auto count = static_cast<std::int64_t>(full.size() + delta.size());
  linear.refuse_if(!delta.empty() && model.layers() > 0 && count != model.layers(), "kda_layers",
                   "must list all " + std::to_string(model.layers()) +
                       " layers together with full_attn_layers; they list " +
                       std::to_string(count));
  model.set_mixer_pattern(layers_where(
      model, [&](std::int64_t layer) { return listed.contains(layer + 1); }, 'G', 'S'));
  file::State& state = *model.mutable_state();
  state.set_kind("kimi_delta");
  state.set_heads(linear.size("num_heads", "state.heads"));
  state.set_groups(state.heads());
  state.set_key_dim(linear.size("head_dim", "state.key_dim"));
  state.set_value_dim(state.key_dim());
  state.set_rank(state.key_dim());
  state.set_convolution(linear.size_or("short_conv_kernel_size", "state.convolution", 4));
  state.set_full_gate(linear.flag_or("use_full_rank_gate", false));
  if (config.count_or("attn_res_block_size", "", 0) > 0) {
    model.set_note("its residuals over blocks of layers are not counted");
  }
  if (config.flag_or("mla_use_output_gate", false)) model.set_attention_gate("value");
  read_experts(config, model);
  read_shared_experts(config, model, "num_shared_experts");
  model.mutable_experts()->set_latent(
      config.count_or("routed_expert_hidden_size", "experts.latent", 0));
  read_first_dense(config, model);
  config.expect("moe_layer_freq", 1, " (all layers behind the dense ones have experts)");
  model.set_prediction_modules(
      config.count_or("num_nextn_predict_layers", "prediction_modules", 0));
}

// A state for each head of attention.
void set_lightning(file::Model& model) {
  file::State& state = *model.mutable_state();
  state.set_kind("lightning");
  state.set_heads(model.heads());
  state.set_groups(model.heads());
  state.set_key_dim(model.head_dim());
  state.set_value_dim(model.head_dim());
}

// Lightning attention in most layers. Post-norms of its kind are norms before, with other
// constants.
void read_minimax_text(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_window(config, model, 0, "");
  std::string letters = layer_letters(config, model, "attn_type_list", "SG");
  if (letters.empty()) {
    letters = layer_letters(config, model, "layer_types",
                            {{"linear_attention", 'S'}, {"full_attention", 'G'}});
  }
  model.set_mixer_pattern(letters.empty() ? "GS" : letters);
  set_lightning(model);
  model.mutable_state()->set_chunk(config.size_or("block_size", "state.chunk", 256));
  read_experts(config, model, {.intermediate = "intermediate_size"});
  model.mutable_experts()->set_shared_intermediate(
      config.count_or("shared_intermediate_size", "experts.shared_intermediate", 0));
}

// LFM2's width counts gate and up as one matrix, as Llama 1 did, and is rounded up.
std::int64_t lfm2_width(Config& config) {
  config.has("intermediate_size");
  const std::int64_t given =
      config.size(config.either("block_ff_dim", "intermediate_size"), "intermediate");
  const std::int64_t multiple = config.period_or("block_multiple_of", "intermediate", 256);
  const double factor = config.number_or("block_ffn_dim_multiplier", 1);
  if (!config.flag_or("block_auto_adjust_ff_dim", true)) return given;
  constexpr auto kMost = static_cast<double>(Config::kMostOfAny);
  const double width = factor * static_cast<double>(2 * given / 3);
  config.refuse_if(!(width >= 0 && width <= kMost), "block_ffn_dim_multiplier",
                   "must give a width of at most " + std::to_string(Config::kMostOfAny));
  const auto least = static_cast<std::int64_t>(std::clamp(width, 1.0, kMost));
  return (least + multiple - 1) / multiple * multiple;
}

void read_lfm2_layers(Config& config, file::Model& model) {
  const std::string words =
      layer_letters(config, model, "layer_types", {{"conv", 'S'}, {"full_attention", 'G'}});
  const std::vector<std::int64_t> full = config.layers("full_attn_idxs", 0, model.layers() - 1);
  config.refuse_if(words.empty() && full.empty(), "layer_types",
                   "must be given: conv or full_attention for each layer (or full_attn_idxs)");
  const std::string listed = layers_where(
      model, [&](std::int64_t layer) { return std::ranges::count(full, layer) > 0; }, 'G', 'S');
  config.refuse_if(!words.empty() && !full.empty() && words != listed, "full_attn_idxs",
                   "must list the layers that layer_types calls full_attention");
  model.set_mixer_pattern(words.empty() ? listed : words);
  if (model.mixer_pattern().find('S') == std::string::npos) return;
  file::State& state = *model.mutable_state();
  state.set_kind("short");
  state.set_heads(model.hidden());
  state.set_groups(1);
  state.set_key_dim(1);
  state.set_value_dim(1);
  state.set_convolution(config.size_or("conv_L_cache", "state.convolution", 3));
  const bool bias = config.flag_or("conv_bias", false);
  state.set_convolution_bias(bias);
  state.set_bias(bias);
}

// LFM2: short convolutions between gates, some layers with attention.
void read_lfm2(Config& config, file::Model& model) {
  read_decoder(config, model, {.tied = true});
  model.set_qk_norm(true);
  for (const char* repeated : {"block_dim", "conv_dim", "conv_dim_out", "tie_embedding"}) {
    config.has(repeated);  // hidden_size and tie_word_embeddings once more
  }
  read_lfm2_layers(config, model);
  if (!config.has("num_experts")) {
    model.set_intermediate(lfm2_width(config));
    return;
  }
  read_experts(config, model);
  read_first_dense(config, model, "num_dense_layers");
}

// Ring-linear: lightning attention with a gate, and in the last layer of each group, and behind the
// last whole group, softmax attention with fewer heads of keys and values.
void read_bailing_linear(Config& config, file::Model& model) {
  read_bailing(config, model);
  const std::int64_t group = config.period_or("layer_group_size", "mixer_pattern", 1);
  const std::int64_t whole = model.layers() / group * group;
  model.set_mixer_pattern(layers_where(
      model, [&](std::int64_t layer) { return (layer + 1) % group == 0 || layer >= whole; }, 'G',
      'S'));
  if (model.mixer_pattern().find('S') != std::string::npos) set_lightning(model);
}

constexpr HuggingFaceFamily kLinearFamilies[] = {
    {"bailing_moe_linear", read_bailing_linear},
    {"bailing_moe_linear_v2", read_bailing_linear},
    {"kimi_linear", read_kimi_linear},
    {"lfm2", read_lfm2},
    {"lfm2_moe", read_lfm2},
    {"minimax", read_minimax_text},
    {"minimax_m1", read_minimax_text},
    {"minimax_text_01", read_minimax_text},
    {"qwen3_5_moe_text", read_qwen3_next},
    {"qwen3_5_text", read_qwen3_next},
    {"qwen3_next", read_qwen3_next},
};

}  // namespace

std::span<const HuggingFaceFamily> linear_families() {
  return kLinearFamilies;
}

}  // namespace stepsim
