#include "proto/hugging_face/hugging_face_families.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

// Reads the keys that decoders with rotary positions, RMS norm and a gated MLP share. `head_dim`
// applies if the file gives none; 0 means hidden / heads.
void read_decoder(Config& config, file::Model& model, std::int64_t head_dim = 0) {
  model.set_layers(config.size("num_hidden_layers", "layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size("num_attention_heads", "heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_kv_heads(config.size_or("num_key_value_heads", "kv_heads", model.heads()));
  if (model.heads() == 0) config.leave_out("kv_heads");
  if (config.has("head_dim") || head_dim > 0) {
    model.set_head_dim(config.size_or("head_dim", "head_dim", head_dim));
  } else {
    model.set_head_dim(
        config.divide_over_heads(model.hidden(), model.heads(), "num_attention_heads"));
  }
  model.set_learned_positions(0);
  model.set_gated_mlp(true);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", false));
  model.set_norm("rms");
}

void read_dense_mlp(Config& config, file::Model& model) {
  model.set_intermediate(config.size("intermediate_size", "intermediate"));
}

void read_experts(Config& config, file::Model& model, std::string_view width) {
  file::Experts& experts = *model.mutable_experts();
  // Two spellings are in use for each; newer files may have both.
  const std::string_view routed = config.either("num_local_experts", "num_experts");
  const std::string_view per_token = config.either("num_experts_per_tok", "experts_per_token");
  experts.set_routed(config.size(routed, "experts.routed"));
  experts.set_per_token(config.size(per_token, "experts.per_token"));
  experts.set_intermediate(config.size(width, "experts.intermediate"));
  if (experts.intermediate() == 0) config.leave_out("intermediate");
}

// Writes one letter per layer from layer_types. Returns false if there are none.
bool read_layer_types(Config& config, file::Model& model) {
  const std::vector<std::string> types = config.texts("layer_types");
  if (types.empty()) return false;
  std::string letters;
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      config.refuse("layer_types", "",
                    "must hold full_attention and sliding_attention only, has \"" + type + "\"");
      return true;
    }
    letters += type == "sliding_attention" ? 'L' : 'G';
  }
  if (static_cast<std::int64_t>(letters.size()) != model.layers()) {
    config.refuse("layer_types", "",
                  "must have one entry for each of the " + std::to_string(model.layers()) +
                      " layers, has " + std::to_string(letters.size()));
  } else if (letters.find('L') == std::string::npos) {
    model.clear_window();
  } else {
    model.set_mixer_pattern(letters);
  }
  return true;
}

// `pattern`: the layers with a window if layer_types does not say it.
void read_window(Config& config, file::Model& model, std::int64_t absent,
                 const std::string& pattern) {
  const std::int64_t window = config.size_or("sliding_window", "window", absent);
  if (window == 0) {
    config.texts("layer_types");
    return;
  }
  model.set_window(window);
  if (!read_layer_types(config, model) && !pattern.empty()) model.set_mixer_pattern(pattern);
}

void read_llama(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
}

void read_mistral(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  read_window(config, model, 0, "");
}

// Projections of q, k, v and of gate and up are one matrix each in the file: the shape is the same.
void read_phi3(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  read_window(config, model, 0, "");
}

void read_starcoder2(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  model.set_gated_mlp(false);
  model.set_norm("layer");
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  const bool bias = config.flag_or("use_bias", true);
  model.set_attention_bias(bias);
  model.set_mlp_bias(bias);
  read_window(config, model, 0, "");
  if (config.number_or("residual_dropout", 0) > 0) model.set_dropout(true);
}

void read_mixtral(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_window(config, model, 0, "");
  read_experts(config, model, "intermediate_size");
}

// Qwen 2 and 3 have a window, if they use it, in all layers from max_window_layers on.
void read_qwen_window(Config& config, file::Model& model) {
  const bool uses = config.flag_or("use_sliding_window", false);
  const std::int64_t global = config.count_or("max_window_layers", "", 28);
  if (!uses) {
    config.has("sliding_window");
    config.texts("layer_types");
    return;
  }
  const auto layers = static_cast<std::size_t>(model.layers());
  const std::size_t first = std::min(layers, static_cast<std::size_t>(global));
  if (first == layers) return;
  read_window(config, model, 4096, std::string(first, 'G') + std::string(layers - first, 'L'));
}

void read_qwen2(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  model.set_qkv_bias(true);
  read_qwen_window(config, model);
}

void read_qwen3_attention(Config& config, file::Model& model) {
  read_decoder(config, model, 128);
  model.set_qk_norm(true);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  read_qwen_window(config, model);
}

void read_qwen3(Config& config, file::Model& model) {
  read_qwen3_attention(config, model);
  read_dense_mlp(config, model);
}

// Layers listed in mlp_only_layers have no experts: they can only be the first ones.
std::int64_t dense_layers(Config& config) {
  const std::vector<std::int64_t> layers = config.numbers("mlp_only_layers");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] == static_cast<std::int64_t>(i)) continue;
    config.refuse("mlp_only_layers", "experts.first_dense",
                  "must be the first layers in order (0, 1, ...): others can't be dense");
    return 0;
  }
  return static_cast<std::int64_t>(layers.size());
}

void read_sparse_layers(Config& config, file::Model& model) {
  file::Experts& experts = *model.mutable_experts();
  experts.set_every(config.size_or("decoder_sparse_step", "experts.every", 1));
  experts.set_first_dense(dense_layers(config));
  // The file counts every `decoder_sparse_step` layers from the first of the model.
  if (experts.every() > 1 && experts.first_dense() % experts.every() != 0) {
    config.refuse("mlp_only_layers", "experts.first_dense",
                  "must be a multiple of decoder_sparse_step (" + std::to_string(experts.every()) +
                      ") many layers, are " + std::to_string(experts.first_dense()));
  }
  const bool all = experts.every() == 1 && experts.first_dense() == 0;
  if (all) {
    config.has("intermediate_size");  // used by no layer
  } else {
    read_dense_mlp(config, model);
  }
}

void read_qwen2_moe(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_qkv_bias(config.flag_or("qkv_bias", true));
  read_qwen_window(config, model);
  read_experts(config, model, "moe_intermediate_size");
  file::Experts& experts = *model.mutable_experts();
  experts.set_shared_intermediate(
      config.size("shared_expert_intermediate_size", "experts.shared_intermediate"));
  experts.set_shared_gate(true);
  read_sparse_layers(config, model);
}

void read_qwen3_moe(Config& config, file::Model& model) {
  read_qwen3_attention(config, model);
  read_experts(config, model, "moe_intermediate_size");
  read_sparse_layers(config, model);
}

// The file's head_dim is only the rotary part, or is absent, so it is computed.
void read_deepseek(Config& config, file::Model& model) {
  file::Latent& latent = *model.mutable_latent();
  latent.set_q_rank(config.count_or("q_lora_rank", "latent.q_rank", 0));
  latent.set_kv_rank(config.size("kv_lora_rank", "latent.kv_rank"));
  latent.set_nope_dim(config.size("qk_nope_head_dim", "latent.nope_dim"));
  latent.set_rope_dim(config.size("qk_rope_head_dim", "latent.rope_dim"));
  latent.set_v_dim(config.size("v_head_dim", "latent.v_dim"));
  read_decoder(config, model, 1);
  model.set_head_dim(latent.nope_dim() + latent.rope_dim());
  read_dense_mlp(config, model);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  const std::int64_t routed = config.count_or("n_routed_experts", "experts.routed", 0);
  if (routed == 0) return;
  file::Experts& experts = *model.mutable_experts();
  experts.set_routed(routed);
  experts.set_per_token(config.size("num_experts_per_tok", "experts.per_token"));
  experts.set_intermediate(config.size("moe_intermediate_size", "experts.intermediate"));
  experts.set_shared_intermediate(
      config.count_or("n_shared_experts", "experts.shared_intermediate", 0) *
      experts.intermediate());
  experts.set_first_dense(config.count_or("first_k_dense_replace", "experts.first_dense", 0));
  config.expect("moe_layer_freq", 1, " (all layers behind the dense ones have experts)");
}

void read_deepseek_v3(Config& config, file::Model& model) {
  read_deepseek(config, model);
  model.set_prediction_modules(
      config.count_or("num_nextn_predict_layers", "prediction_modules", 0));
}

void read_gemma(Config& config, file::Model& model) {
  read_decoder(config, model, 256);
  read_dense_mlp(config, model);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  model.set_attention_bias(config.flag_or("attention_bias", false));
}

void read_gemma2(Config& config, file::Model& model) {
  read_gemma(config, model);
  model.set_post_norms(true);
  read_window(config, model, 4096, "LG");
}

// Published files leave out what all Gemma 3 models share: the vocabulary and the width of a head.
void read_gemma3(Config& config, file::Model& model) {
  model.set_layers(config.size("num_hidden_layers", "layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size_or("num_attention_heads", "heads", 8));
  model.set_kv_heads(config.size_or("num_key_value_heads", "kv_heads", 4));
  model.set_head_dim(config.size_or("head_dim", "head_dim", 256));
  model.set_vocabulary(config.size_or("vocab_size", "vocabulary", 262'208));
  model.set_gated_mlp(true);
  model.set_norm("rms");
  read_dense_mlp(config, model);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_qk_norm(true);
  model.set_post_norms(true);
  const auto period =
      static_cast<std::size_t>(config.size_or("sliding_window_pattern", "mixer_pattern", 6));
  const std::string pattern = period > 0 ? std::string(period - 1, 'L') + "G" : "G";
  read_window(config, model, 4096, pattern);
}

void read_gpt2(Config& config, file::Model& model) {
  model.set_layers(config.size("n_layer", "layers"));
  model.set_hidden(config.size("n_embd", "hidden"));
  model.set_heads(config.size("n_head", "heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_learned_positions(config.size("n_positions", "learned_positions"));
  model.set_intermediate(config.size_or("n_inner", "intermediate", 4 * model.hidden()));
  model.set_kv_heads(model.heads());
  model.set_head_dim(config.divide_over_heads(model.hidden(), model.heads(), "n_head"));
  model.set_gated_mlp(false);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  model.set_attention_bias(true);
  model.set_mlp_bias(true);
  model.set_norm("layer");
  config.expect("add_cross_attention", false, "");
  if (config.number_or("resid_pdrop", 0) > 0) model.set_dropout(true);
}

void read_gpt_oss(Config& config, file::Model& model) {
  read_decoder(config, model, 64);
  model.set_attention_bias(config.flag_or("attention_bias", true));
  model.set_mlp_bias(true);
  model.set_attention_sinks(true);
  read_window(config, model, 128, "LG");
  read_experts(config, model, "intermediate_size");
  model.mutable_experts()->set_router_bias(true);
}

// With ALiBi, positions are neither rotated nor learned.
void read_bloom(Config& config, file::Model& model) {
  model.set_layers(config.size(config.either("n_layer", "num_hidden_layers"), "layers"));
  model.set_hidden(config.size(config.either("hidden_size", "n_embed"), "hidden"));
  model.set_heads(config.size(config.either("n_head", "num_attention_heads"), "heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_intermediate(4 * model.hidden());
  model.set_kv_heads(model.heads());
  model.set_head_dim(config.divide_over_heads(model.hidden(), model.heads(), "n_head"));
  model.set_rotary(false);
  model.set_gated_mlp(false);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  model.set_attention_bias(true);
  model.set_mlp_bias(true);
  model.set_embedding_norm(true);
  model.set_norm("layer");
  if (config.number_or("hidden_dropout", 0) > 0) model.set_dropout(true);
}

constexpr HuggingFaceFamily kFamilies[] = {
    {"bloom", read_bloom},
    {"deepseek_v2", read_deepseek},
    {"deepseek_v3", read_deepseek_v3},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3},
    {"gpt2", read_gpt2},
    {"gpt_oss", read_gpt_oss},
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"phi3", read_phi3},
    {"qwen2", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"starcoder2", read_starcoder2},
};

}  // namespace

std::span<const HuggingFaceFamily> hugging_face_families() {
  return kFamilies;
}

}  // namespace stepsim
