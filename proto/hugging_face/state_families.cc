// Models in which layers have a state: Mamba, gated delta rules, lightning attention, and hybrids.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "proto/hugging_face/families.h"
#include "proto/hugging_face/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

constexpr Mamba2Keys kMambaOfHybrids{.heads = "mamba_n_heads",
                                     .value_dim = "mamba_d_head",
                                     .groups = "mamba_n_groups",
                                     .key_dim = "mamba_d_state",
                                     .convolution = "mamba_d_conv",
                                     .chunk = "mamba_chunk_size",
                                     .convolution_bias = "mamba_conv_bias"};

// Layers of a state and nothing else.
void read_states_alone(Config& config, file::Model& model, bool tied) {
  model.set_layers(read_layers(config, "num_hidden_layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", tied));
  model.set_norm("rms");
  model.set_mixer_pattern("S");
  model.set_mlp_pattern("-");
}

// Falcon's normalises steps, B and C, without weights.
void read_mamba_model(Config& config, file::Model& model) {
  read_states_alone(config, model, true);
  read_mamba(config, model,
             {.expand = "expand",
              .key_dim = "state_size",
              .convolution = "conv_kernel",
              .convolution_bias = "use_conv_bias",
              .rank = "time_step_rank",
              .bias = "use_bias"});
  model.mutable_state()->set_inner_norm(false);
  const std::int64_t inner =
      config.size_or("intermediate_size", "state.heads", model.state().heads());
  config.refuse_if(inner != model.state().heads(), "intermediate_size",
                   "must be expand x hidden_size (" + std::to_string(model.state().heads()) +
                       "), is " + std::to_string(inner));
}

void read_mamba2_model(Config& config, file::Model& model) {
  read_states_alone(config, model, false);
  read_mamba2(config, model,
              {.heads = "num_heads",
               .value_dim = "head_dim",
               .groups = "n_groups",
               .key_dim = "state_size",
               .convolution = "conv_kernel",
               .chunk = "chunk_size",
               .convolution_bias = "use_conv_bias"});
  model.mutable_state()->set_bias(config.flag_or("use_bias", false));
}

// A layer of the file is one branch: M a state, * attention, - an MLP, E experts.
void read_nemotron_pattern(Config& config, file::Model& model) {
  const std::string letters = config.text_or("hybrid_override_pattern", "");
  const std::string words =
      layer_letters(config, model, "layers_block_type",
                    {{"mamba", 'M'}, {"attention", '*'}, {"mlp", '-'}, {"moe", 'E'}});
  config.refuse_if(!letters.empty() && !words.empty() && letters != words, "layers_block_type",
                   "must say the same as hybrid_override_pattern (" + letters + "), says " + words);
  const std::string& layers = letters.empty() ? words : letters;
  std::string mixers, mlps;
  for (const char letter : layers) {
    mixers += letter == 'M' ? 'S' : letter == '*' ? 'G' : '-';
    mlps += letter == 'E' ? 'E' : letter == '-' ? 'D' : '-';
  }
  const std::size_t wrong = layers.find_first_not_of("M*-E");
  config.refuse_if(layers.empty(), "hybrid_override_pattern",
                   "must be given: a letter a layer, M, *, - or E");
  config.refuse_if(!layers.empty() && wrong != std::string::npos, "hybrid_override_pattern",
                   "must be letters M, *, - and E; layer " + std::to_string(wrong) + " is " +
                       layers.substr(std::min(wrong, layers.size()), 1));
  config.refuse_if(model.has_layers() && model.layers() > 0 && wrong == std::string::npos &&
                       static_cast<std::int64_t>(layers.size()) != model.layers(),
                   "hybrid_override_pattern",
                   "must have a letter for each of the " + std::to_string(model.layers()) +
                       " layers, has " + std::to_string(layers.size()));
  if (wrong != std::string::npos) config.leave_out("mlp_pattern");
  if (model.layers() == 0) model.set_layers(static_cast<std::int64_t>(layers.size()));
  model.set_mixer_pattern(mixers);
  model.set_mlp_pattern(mlps);
}

void read_nemotron_experts(Config& config, file::Model& model) {
  file::Experts& experts = *model.mutable_experts();
  read_experts(config, model);
  experts.set_shared_intermediate(
      config.count_or("moe_shared_expert_intermediate_size", "experts.shared_intermediate", 0));
  config.count_or("n_shared_experts", "", 0);
  experts.set_latent(config.count_or("moe_latent_size", "experts.latent", 0));
}

void read_nemotron_h(Config& config, file::Model& model) {
  if (config.has("num_hidden_layers")) {
    model.set_layers(read_layers(config, "num_hidden_layers"));
  }
  read_nemotron_pattern(config, model);
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_heads(config.size("num_attention_heads", "heads"));
  model.set_kv_heads(config.size_or("num_key_value_heads", "kv_heads", model.heads()));
  config.has("attention_head_dim");
  config.has("head_dim");
  model.set_head_dim(
      config.size_or(config.has("head_dim") ? "head_dim" : "attention_head_dim", "head_dim", 128));
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", false));
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
  model.set_gated_mlp(false);
  model.set_rotary(false);
  model.set_intermediate(config.size_or("intermediate_size", "intermediate", 1));
  read_mamba2(config, model,
              {.heads = "mamba_num_heads",
               .value_dim = "mamba_head_dim",
               .groups = "n_groups",
               .key_dim = "ssm_state_size",
               .convolution = "conv_kernel",
               .chunk = "chunk_size",
               .convolution_bias = "use_conv_bias"});
  model.mutable_state()->set_bias(config.flag_or("use_bias", false));
  if (model.mlp_pattern().find('E') != std::string::npos) {
    read_nemotron_experts(config, model);
  } else {
    config.has("n_routed_experts");
  }
  leave_out_prediction(config, model, "num_nextn_predict_layers");
}

void read_falcon_h1(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  model.set_mixer_pattern("B");
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
  read_mamba2(config, model, kMambaOfHybrids);
  model.mutable_state()->set_inner_norm(config.flag_or("mamba_rms_norm", true));
  const std::int64_t inner = model.state().heads() * model.state().value_dim();
  const std::int64_t said = config.size_or("mamba_d_ssm", "state.heads", inner);
  config.refuse_if(said != inner && said * inner > 0, "mamba_d_ssm",
                   "must be mamba_n_heads x mamba_d_head (" + std::to_string(inner) + "), is " +
                       std::to_string(said));
  model.mutable_state()->set_bias(config.flag_or("mamba_proj_bias", false));
}

void read_granite_hybrid(Config& config, file::Model& model) {
  read_decoder(config, model, {.tied = true});
  model.set_rotary(config.choice_or("position_embedding_type", {"rope", "nope"}, "nope") == "rope");
  model.set_mixer_pattern(
      layer_letters(config, model, "layer_types", {{"mamba", 'S'}, {"attention", 'G'}}));
  if (model.mixer_pattern().find('S') != std::string::npos) {
    read_mamba2(config, model, kMambaOfHybrids);
  } else {
    for (const char* key : {"mamba_n_heads", "mamba_d_state", "mamba_expand"}) config.has(key);
  }
  model.set_attention_bias(config.flag_or("attention_bias", false));
  const std::int64_t shared =
      config.count_or("shared_intermediate_size", "experts.shared_intermediate", 0);
  if (config.count_or("num_local_experts", "experts.routed", 0) == 0) {
    config.has("num_experts_per_tok");
    config.has("intermediate_size");
    model.set_intermediate(shared);  // the shared MLP stands alone
    return;
  }
  read_experts(config, model, {.intermediate = "intermediate_size"});
  model.mutable_experts()->set_shared_intermediate(shared);
}

void read_bamba(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  const std::vector<std::int64_t> attention =
      config.layers("attn_layer_indices", 0, model.layers() - 1);
  model.set_mixer_pattern(layers_where(
      model, [&](std::int64_t layer) { return std::ranges::count(attention, layer) > 0; }, 'G',
      'S'));
  read_mamba2(config, model, kMambaOfHybrids);
  model.mutable_state()->set_bias(config.flag_or("mamba_proj_bias", false));
}

// Jamba: Mamba-1, some layers with attention, some with experts, without positions.
void read_jamba(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  model.set_rotary(false);
  read_window(config, model, 0, "");
  const auto places = [&](std::string_view period_key, std::int64_t period,
                          std::string_view offset_key, std::int64_t offset) {
    const std::int64_t every = config.period_or(period_key, "mixer_pattern", period);
    const std::int64_t first = config.count_or(offset_key, "mixer_pattern", offset);
    config.refuse_if(first >= every, offset_key,
                     "must be less than " + std::string(period_key) + " (" + std::to_string(every) +
                         "), is " + std::to_string(first));
    return [every, first](std::int64_t layer) { return every > 0 && layer % every == first; };
  };
  model.set_mixer_pattern(
      layers_where(model, places("attn_layer_period", 8, "attn_layer_offset", 4), 'G', 'S'));
  read_mamba(config, model,
             {.expand = "mamba_expand",
              .key_dim = "mamba_d_state",
              .convolution = "mamba_d_conv",
              .convolution_bias = "mamba_conv_bias",
              .rank = "mamba_dt_rank",
              .bias = "mamba_proj_bias"});
  const auto has_experts = places("expert_layer_period", 2, "expert_layer_offset", 1);
  if (config.size_or("num_experts", "experts.routed", 16) == 1) {
    config.has("num_experts_per_tok");
    return;
  }
  read_experts(config, model, {.intermediate = "intermediate_size"});
  model.set_mlp_pattern(layers_where(model, has_experts, 'E', 'D'));
}

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
  config.expect("decoder_sparse_step", 1, " (every layer has experts)");
  const std::vector<std::int64_t> dense = config.layers("mlp_only_layers", 0, model.layers() - 1);
  config.has("intermediate_size");
  if (dense.empty()) return;
  model.set_mlp_pattern(layers_where(
      model, [&](std::int64_t layer) { return std::ranges::count(dense, layer) > 0; }, 'D', 'E'));
  read_dense_mlp(config, model);
}

void read_zamba2_attention(Config& config, file::Model& model) {
  model.set_heads(config.size("num_attention_heads", "heads"));
  model.set_kv_heads(config.size_or("num_key_value_heads", "kv_heads", model.heads()));
  const std::int64_t inputs = 2 * model.hidden();
  const std::int64_t width = config.size_or("attention_hidden_size", "head_dim", inputs);
  config.refuse_if(
      width != inputs && width * inputs > 0, "attention_hidden_size",
      "must be 2 x hidden_size (" + std::to_string(inputs) + "), is " + std::to_string(width));
  model.set_head_dim(config.has("attention_head_dim")
                         ? config.size("attention_head_dim", "head_dim")
                         : config.divide_over_heads(width, model.heads(), "num_attention_heads"));
  model.set_rotary(config.flag_or("use_mem_rope", false));
  for (const char* repeated : {"kv_channels", "num_query_groups", "ffn_hidden_size"}) {
    config.has(repeated);
  }
}

void read_zamba2_layers(Config& config, file::Model& model) {
  const std::string words =
      layer_letters(config, model, "layers_block_type", {{"mamba", 'S'}, {"hybrid", 'Z'}});
  const std::vector<std::int64_t> hybrid = config.layers("hybrid_layer_ids", 0, model.layers() - 1);
  const std::string listed = layers_where(
      model, [&](std::int64_t layer) { return std::ranges::count(hybrid, layer) > 0; }, 'Z', 'S');
  config.refuse_if(words.empty() && hybrid.empty(), "layers_block_type",
                   "must be given: mamba or hybrid for each layer (or hybrid_layer_ids)");
  config.refuse_if(!words.empty() && !hybrid.empty() && words != listed, "hybrid_layer_ids",
                   "must list the layers that layers_block_type calls hybrid");
  model.set_mixer_pattern(words.empty() ? listed : words);
  model.set_mlp_pattern("-");
  const std::int64_t blocks = config.size_or("num_mem_blocks", "shared.blocks", 1);
  const bool adapts = config.flag_or("use_shared_mlp_adapter", true);
  const std::int64_t rank = config.size_or("adapter_rank", "shared.adapter_rank", 128);
  if (model.mixer_pattern().find('Z') == std::string::npos) return;
  model.mutable_shared()->set_blocks(blocks);
  if (adapts) model.mutable_shared()->set_adapter_rank(rank);
}

// Zamba 2: states, and before some of them a block of attention and MLP whose weights they share.
void read_zamba2(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, "num_hidden_layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  read_zamba2_attention(config, model);
  model.set_intermediate(config.size("intermediate_size", "intermediate"));
  model.set_gated_mlp(true);
  model.set_norm("rms");
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  model.set_mlp_bias(config.flag_or("add_bias_linear", false));
  read_zamba2_layers(config, model);
  config.expect("use_shared_attention_adapter", false,
                " (adapters of shared attention are not modelled)");
  read_mamba2(config, model,
              {.heads = "n_mamba_heads",
               .value_dim = "mamba_headdim",
               .groups = "mamba_ngroups",
               .key_dim = "mamba_d_state",
               .convolution = "mamba_d_conv",
               .chunk = "chunk_size",
               .convolution_bias = "use_conv_bias"});
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
  file::State& state = *model.mutable_state();
  state.set_kind("lightning");
  state.set_heads(model.heads());
  state.set_groups(model.heads());
  state.set_key_dim(model.head_dim());
  state.set_value_dim(model.head_dim());
  state.set_chunk(config.size_or("block_size", "state.chunk", 256));
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

constexpr HuggingFaceFamily kStateFamilies[] = {
    {"lfm2", read_lfm2},
    {"lfm2_moe", read_lfm2},
    {"bamba", read_bamba},
    {"falcon_h1", read_falcon_h1},
    {"granitemoehybrid", read_granite_hybrid},
    {"falcon_mamba", read_mamba_model},
    {"jamba", read_jamba},
    {"kimi_linear", read_kimi_linear},
    {"mamba", read_mamba_model},
    {"mamba2", read_mamba2_model},
    {"minimax", read_minimax_text},
    {"minimax_m1", read_minimax_text},
    {"minimax_text_01", read_minimax_text},
    {"nemotron_h", read_nemotron_h},
    {"qwen3_5_moe_text", read_qwen3_next},
    {"qwen3_5_text", read_qwen3_next},
    {"qwen3_next", read_qwen3_next},
    {"zamba2", read_zamba2},
};

}  // namespace

std::span<const HuggingFaceFamily> state_families() {
  return kStateFamilies;
}

}  // namespace stepsim
