// Models in which layers have a state of Mamba, and hybrids.

#include <algorithm>
#include <string>
#include <vector>

#include "proto/hugging_face/families/families.h"
#include "proto/hugging_face/families/family_parts.h"

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
  // The width in the file counts: falcon_mamba's `expand` is another thing.
  model.mutable_state()->set_heads(
      config.size_or("intermediate_size", "state.heads", model.state().heads()));
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

// A module has a branch of attention or of a state, and one of experts or an MLP.
void read_nemotron_modules(Config& config, file::Model& model) {
  std::string letters = config.text_or("mtp_hybrid_override_pattern", "");
  for (const std::string& word : config.texts("mtp_layers_block_type")) {
    letters += word == "attention" ? "*" : word == "mamba" ? "M" : word == "moe" ? "E" : "-";
  }
  std::string block;
  if (letters == "*E" || letters.empty()) block = "GE";
  if (letters == "ME") block = "SE";
  if (letters == "*-") block = "GD";
  config.refuse_if(block.empty(), "mtp_layers_block_type",
                   "must be attention or mamba, then moe, is " + letters);
  read_prediction(config, model, "num_nextn_predict_layers", block);
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
  read_nemotron_modules(config, model);
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
  const std::string letters =
      layer_letters(config, model, "layer_types", {{"mamba", 'S'}, {"attention", 'G'}});
  model.set_mixer_pattern(letters.empty() ? "S" : letters);
  if (model.mixer_pattern().find('S') != std::string::npos) {
    read_mamba2(config, model, kMambaOfHybrids);
  } else {
    config.has("mamba_d_state");  // of no layer
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
  const bool adapts_attention = config.flag_or("use_shared_attention_adapter", false);
  const std::int64_t rank = config.size_or("adapter_rank", "shared.adapter_rank", 128);
  if (model.mixer_pattern().find('Z') == std::string::npos) return;
  model.mutable_shared()->set_blocks(blocks);
  if (adapts) model.mutable_shared()->set_adapter_rank(rank);
  if (adapts_attention) model.mutable_shared()->set_attention_adapter_rank(rank);
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
  read_mamba2(config, model,
              {.heads = "n_mamba_heads",
               .value_dim = "mamba_headdim",
               .groups = "mamba_ngroups",
               .key_dim = "mamba_d_state",
               .convolution = "mamba_d_conv",
               .chunk = "chunk_size",
               .convolution_bias = "use_conv_bias"});
}

void read_attention_of_ssm(Config& config, file::Model& model) {
  Config attention = config.nested("attn_cfg");
  model.set_heads(attention.size("num_heads", "heads"));
  model.set_kv_heads(attention.size_or("num_heads_kv", "kv_heads", model.heads()));
  model.set_head_dim(attention.has("head_dim")
                         ? attention.size("head_dim", "head_dim")
                         : attention.divide_over_heads(model.hidden(), model.heads(), "num_heads"));
  model.set_rotary(attention.count_or("rotary_emb_dim", "", 0) > 0);
  model.set_attention_bias(attention.flag_or("qkv_proj_bias", true));
}

void read_mamba2_of_ssm(Config& config, file::Model& model) {
  file::State& state = *model.mutable_state();
  state.set_kind("mamba2");
  const std::int64_t inner = config.size_or("expand", "state.heads", 2) * model.hidden();
  state.set_value_dim(config.size_or("headdim", "state.value_dim", 64));
  state.set_heads(config.divide_over_heads(inner, state.value_dim(), "headdim"));
  state.set_groups(config.size_or("ngroups", "state.groups", 1));
  state.set_key_dim(config.size_or("d_state", "state.key_dim", 128));
  state.set_convolution(config.size_or("d_conv", "state.convolution", 4));
  state.set_convolution_bias(config.flag_or("conv_bias", true));
  state.set_bias(config.flag_or("bias", false));
  state.set_chunk(config.size_or("chunk_size", "state.chunk", 256));
}

// The files of Mamba's authors: layers of a state, some of attention, a dense MLP behind each or
// none.
void read_mamba_ssm(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, "n_layer"));
  model.set_hidden(config.size("d_model", "hidden"));
  const std::int64_t multiple = config.period_or("pad_vocab_size_multiple", "vocabulary", 8);
  const std::int64_t words = config.size("vocab_size", "vocabulary");
  model.set_vocabulary((words + multiple - 1) / multiple * multiple);
  model.set_tied_embeddings(config.flag_or("tie_embeddings", true));
  model.set_norm(config.flag_or("rms_norm", true) ? "rms" : "layer");
  const std::vector<std::int64_t> attention =
      config.layers("attn_layer_idx", 0, model.layers() - 1);
  model.set_mixer_pattern(layers_where(
      model, [&](std::int64_t layer) { return std::ranges::count(attention, layer) > 0; }, 'G',
      'S'));
  if (!attention.empty()) read_attention_of_ssm(config, model);
  const std::int64_t width = config.count_or("d_intermediate", "intermediate", 0);
  if (width > 0) model.set_intermediate(width);
  model.set_mlp_pattern(width > 0 ? "D" : "-");
  Config state = config.nested("ssm_cfg");
  if (state.choice_or("layer", {"Mamba1", "Mamba2"}, "Mamba1") == "Mamba2") {
    read_mamba2_of_ssm(state, model);
  } else {
    read_mamba(state, model,
               {.expand = "expand",
                .key_dim = "d_state",
                .convolution = "d_conv",
                .convolution_bias = "conv_bias",
                .rank = "dt_rank",
                .bias = "bias"});
    model.mutable_state()->set_inner_norm(false);
  }
}

constexpr HuggingFaceFamily kStateFamilies[] = {
    {"bamba", read_bamba},
    {"falcon_h1", read_falcon_h1},
    {"granitemoehybrid", read_granite_hybrid},
    {"falcon_mamba", read_mamba_model},
    {"jamba", read_jamba},
    {"mamba", read_mamba_model},
    {"mamba2", read_mamba2_model},
    {"mamba_ssm", read_mamba_ssm},
    {"nemotron_h", read_nemotron_h},
    {"zamba2", read_zamba2},
};

}  // namespace

std::span<const HuggingFaceFamily> state_families() {
  return kStateFamilies;
}

}  // namespace stepsim
