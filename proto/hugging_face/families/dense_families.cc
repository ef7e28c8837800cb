// Decoders of attention and dense MLPs.

#include <algorithm>
#include <string>
#include <string_view>

#include "proto/hugging_face/families/families.h"
#include "proto/hugging_face/families/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

void read_plain(Config& config, file::Model& model, const DecoderDefaults& defaults = {}) {
  read_decoder(config, model, defaults);
  read_dense_mlp(config, model);
}

// Layers without rotary embedding have the same matrices and kernels but for the rotation.
void read_smollm3(Config& config, file::Model& model) {
  read_plain(config, model, {.tied = true});
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
  for (const char* rotation : {"no_rope_layers", "no_rope_layer_interval"}) config.has(rotation);
  if (config.flag_or("use_sliding_window", false)) {
    read_window(config, model, 0, "");
  } else {
    config.has("sliding_window");
    config.texts("layer_types");
  }
}

void read_starcoder2(Config& config, file::Model& model) {
  read_plain(config, model, {.tied = true});
  model.set_gated_mlp(false);
  model.set_norm("layer");
  const bool bias = config.flag_or("use_bias", true);
  model.set_attention_bias(bias);
  model.set_mlp_bias(bias);
  read_window(config, model, 0, "");
  if (config.number_or("residual_dropout", 0) > 0) model.set_dropout(true);
}

// Qwen 2 with modules of multi-token prediction.
void read_mimo(Config& config, file::Model& model) {
  read_qwen2(config, model);
  model.set_qkv_bias(config.flag_or("attention_bias", true));
  model.set_prediction_modules(
      config.count_or("num_nextn_predict_layers", "prediction_modules", 0));
}

void read_gemma(Config& config, file::Model& model) {
  read_plain(config, model, {.head_dim = 256, .tied = true});
  model.set_attention_bias(config.flag_or("attention_bias", false));
}

void read_gemma2(Config& config, file::Model& model) {
  read_gemma(config, model);
  model.set_post_norms(true);
  read_window(config, model, 4096, "LG");
}

// Published files leave out what all Gemma 3 models share: the vocabulary and the width of a head.
void read_gemma3(Config& config, file::Model& model) {
  model.set_layers(config.has("num_hidden_layers") ? read_layers(config, "num_hidden_layers") : 26);
  model.set_hidden(config.size_or("hidden_size", "hidden", 2304));
  model.set_heads(config.size_or("num_attention_heads", "heads", 8));
  model.set_kv_heads(config.size_or("num_key_value_heads", "kv_heads", 4));
  model.set_head_dim(config.size_or("head_dim", "head_dim", 256));
  model.set_vocabulary(config.size_or("vocab_size", "vocabulary", 262'208));
  model.set_gated_mlp(true);
  model.set_norm("rms");
  model.set_intermediate(config.size_or("intermediate_size", "intermediate", 9216));
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_qk_norm(true);
  model.set_post_norms(true);
  read_window(config, model, 4096,
              last_is_global(config.size_or("sliding_window_pattern", "mixer_pattern", 6)));
}

// Global layers have heads of another width, and keys that are values, too. The last layers may
// share keys and values.
void read_gemma4(Config& config, file::Model& model) {
  read_plain(config, model, {.head_dim = 256, .tied = true});
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_qk_norm(true);
  model.set_post_norms(true);
  file::Local& local = *model.mutable_local();
  local.set_head_dim(model.head_dim());
  local.set_kv_heads(model.kv_heads());
  model.set_head_dim(config.size_or("global_head_dim", "head_dim", 512));
  model.set_values_are_keys(config.flag_or("attention_k_eq_v", false));
  const std::int64_t global_kv =
      config.count_or("num_global_key_value_heads", "kv_heads", model.kv_heads());
  if (model.values_are_keys() && global_kv > 0) model.set_kv_heads(global_kv);
  read_window(config, model, 512, "LLLLLG");
  if (!model.has_window()) model.clear_local();
  const std::int64_t sharing = config.count_or("num_kv_shared_layers", "mixer_pattern", 0);
  std::string letters = model.mixer_pattern();
  for (std::size_t layer =
           letters.size() - std::min(letters.size(), static_cast<std::size_t>(sharing));
       layer < letters.size(); ++layer) {
    letters[layer] = letters[layer] == 'L' ? 'l' : 'g';
  }
  if (!letters.empty()) model.set_mixer_pattern(letters);
  model.set_layer_embedding(config.count_or("hidden_size_per_layer_input", "layer_embedding", 0));
  const std::int64_t rows =
      config.size_or("vocab_size_per_layer_input", "layer_embedding", model.vocabulary());
  config.refuse_if(model.layer_embedding() > 0 && rows != model.vocabulary(),
                   "vocab_size_per_layer_input",
                   "must be vocab_size (" + std::to_string(model.vocabulary()) + "), is " +
                       std::to_string(rows));
  if (sharing > 0 && config.flag_or("use_double_wide_mlp", false)) {
    for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
      const bool wide = layer + sharing >= model.layers();
      model.add_mlp_widths((wide ? 2 : 1) * model.intermediate());
    }
    model.set_intermediate(2 * model.intermediate());
  }
  if (!config.flag_or("enable_moe_block", false)) {
    config.has("num_experts");
    return;
  }
  // The dense MLP stands beside the experts in each layer, as shared experts do.
  read_experts(config, model, {.per_token = {"top_k_experts"}});
  model.mutable_experts()->set_shared_intermediate(model.intermediate());
}

// Norms stand behind the branches only.
void read_olmo2(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_pre_norms(false);
  model.set_post_norms(true);
  model.set_qk_norm_whole(true);
}

void read_olmo3(Config& config, file::Model& model) {
  read_olmo2(config, model);
  read_window(config, model, 4096, "LLLG");
}

void read_exaone4(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_pre_norms(false);
  model.set_post_norms(true);
  model.set_qk_norm(true);
  read_window(config, model, 0, pattern_or(config, "sliding_window_pattern", 4));
}

// Attention and MLP read one norm, which has no bias.
void read_cohere(Config& config, file::Model& model) {
  read_plain(config, model, {.tied = true});
  model.set_norm("layer_without_bias");
  model.set_parallel_branches(true);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_qk_norm(config.flag_or("use_qk_norm", false));
}

void read_cohere2(Config& config, file::Model& model) {
  read_cohere(config, model);
  read_window(config, model, 4096,
              last_is_global(config.size_or("sliding_window_pattern", "mixer_pattern", 4)));
}

void read_seed_oss(Config& config, file::Model& model) {
  read_plain(config, model, {.head_dim = 128});
  model.set_qkv_bias(config.flag_or("attention_bias", true));
  config.expect("attention_out_bias", false, " (its output projection has no bias here)");
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
}

// GLM-4 before 0414: two norms a layer.
void read_glm(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_qkv_bias(config.flag_or("attention_bias", true));
}

// GLM-4-0414: four norms a layer; biases on queries, keys and values alone.
void read_glm4(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_qkv_bias(config.flag_or("attention_bias", false));
  model.set_post_norms(true);
}

// Squared ReLU, so no gate; its norms have a bias.
void read_nemotron(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_gated_mlp(false);
  model.set_norm("layer");
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
}

void read_apertus(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_gated_mlp(false);
  model.set_qk_norm(true);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
}

void read_hunyuan_dense(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
  model.set_qk_norm(config.flag_or("use_qk_norm", true));
  config.expect("num_experts", 1, " (a dense model)");
  config.has("attention_head_dim");  // head_dim once more
  config.has("num_shared_expert");
}

void read_ernie(Config& config, file::Model& model) {
  read_plain(config, model, {.tied = true});
  const bool bias = config.flag_or("use_bias", false);
  model.set_attention_bias(bias);
  model.set_mlp_bias(bias);
}

void read_stablelm(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_norm("layer");
  model.set_qkv_bias(config.flag_or("use_qkv_bias", false));
  model.set_parallel_branches(config.flag_or("use_parallel_residual", false));
  model.set_qk_norm(config.flag_or("qk_layernorm", false));
}

// Persimmon: biases everywhere, squared ReLU, so no gate.
void read_persimmon(Config& config, file::Model& model) {
  read_plain(config, model);
  set_gpt_block(model);
  model.set_qk_norm(config.flag_or("qk_layernorm", true));
}

// Phi-3-small: biases everywhere, gate and up projection in one matrix. Its sparse layers attend to
// blocks of tokens; they are counted as attention to all.
void read_phi3_small(Config& config, file::Model& model) {
  read_decoder(config, model, {.tied = true});
  set_gpt_block(model);
  model.set_gated_mlp(true);
  model.set_intermediate(config.size("ff_intermediate_size", "intermediate"));
  const std::int64_t every = config.count_or("dense_attention_every_n_layers", "", 0);
  if (every > 1) model.set_note("its block-sparse attention is counted as attention to all tokens");
}

// ---- decoders that only rename keys, or leave parts out ----

// AFM: squared ReLU, so no gate.
void read_arcee(Config& config, file::Model& model) {
  read_llama(config, model);
  model.set_gated_mlp(false);
}

// Phi-4-multimodal's text: its adapters for pictures and sound stand beside.
void read_phi4mm(Config& config, file::Model& model) {
  read_phi3(config, model);
  for (const char* adapter : {"vision_lora", "speech_lora"}) {
    if (config.has(adapter)) model.set_note("its adapters for pictures and sound are not counted");
  }
}

// InternLM: `bias` is that of all projections of attention; the third version has qkv_bias besides.
void read_internlm(Config& config, file::Model& model) {
  read_plain(config, model);
  const bool bias = config.flag_or("bias", false);
  model.set_attention_bias(bias);
  model.set_qkv_bias(config.flag_or("qkv_bias", false));
}

void read_internlm3(Config& config, file::Model& model) {
  read_internlm(config, model);
  model.set_mlp_bias(model.attention_bias());
}

// ChatGLM 2 and 3, GLM-4-9B: names of keys as in Megatron-LM.
void read_chatglm(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, "num_layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size("num_attention_heads", "heads"));
  const bool grouped = config.flag_or("multi_query_attention", false);
  const std::int64_t groups = config.size_or("multi_query_group_num", "kv_heads", 1);
  model.set_kv_heads(grouped ? groups : model.heads());
  model.set_head_dim(config.size_or("kv_channels", "head_dim", 128));
  config.has("vocab_size");
  model.set_vocabulary(config.size(config.either("padded_vocab_size", "vocab_size"), "vocabulary"));
  model.set_intermediate(config.size("ffn_hidden_size", "intermediate"));
  model.set_gated_mlp(true);
  model.set_norm(config.flag_or("rmsnorm", true) ? "rms" : "layer");
  const bool bias = config.flag_or("add_bias_linear", false);
  model.set_attention_bias(bias);
  model.set_mlp_bias(bias);
  model.set_qkv_bias(config.flag_or("add_qkv_bias", false));
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", false));
  config.expect("post_layer_norm", true, " (a norm stands before the head)");
}

// OLMo: norms without weights, which are so few that they are counted all the same.
void read_olmo(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_norm("layer_without_bias");
  model.set_attention_bias(config.flag_or("attention_bias", false));
}

// Baichuan: 7B rotates, 13B has ALiBi, which takes the place of max_position_embeddings.
void read_baichuan(Config& config, file::Model& model) {
  read_plain(config, model);
  model.set_rotary(config.has("max_position_embeddings"));
}

// Qwen 1: intermediate_size counts gate and up together.
void read_qwen1(Config& config, file::Model& model) {
  read_decoder(config, model);
  config.has("kv_channels");
  model.set_qkv_bias(true);
  model.set_intermediate(config.size("intermediate_size", "intermediate") / 2);
  config.expect("no_bias", true, " (only queries, keys and values have a bias)");
}

// MiniCPM 3 has latent attention; its values are as wide as a head of the stream.
void read_minicpm3(Config& config, file::Model& model) {
  read_plain(config, model, {.head_dim = 1, .tied = true});
  const std::int64_t of_stream =
      config.divide_over_heads(model.hidden(), model.heads(), "num_attention_heads");
  file::Latent& latent = *model.mutable_latent();
  latent.set_q_rank(config.size("q_lora_rank", "latent.q_rank"));
  latent.set_kv_rank(config.size("kv_lora_rank", "latent.kv_rank"));
  latent.set_nope_dim(config.size("qk_nope_head_dim", "latent.nope_dim"));
  latent.set_rope_dim(config.size("qk_rope_head_dim", "latent.rope_dim"));
  latent.set_v_dim(config.size_or("v_head_dim", "latent.v_dim", of_stream));
  model.set_head_dim(latent.nope_dim() + latent.rope_dim());
  model.set_attention_bias(config.flag_or("attention_bias", false));
}

// EXAONE 3: Llama's with other names.
void read_exaone3(Config& config, file::Model& model) {
  config.has("num_hidden_layers");
  const std::string_view layers = config.either("num_layers", "num_hidden_layers");
  model.set_layers(read_layers(config, layers));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size("num_attention_heads", "heads"));
  model.set_kv_heads(config.size_or("num_key_value_heads", "kv_heads", model.heads()));
  const std::int64_t own = config.count_or("head_dim", "head_dim", 0);
  model.set_head_dim(
      own > 0 ? own
              : config.divide_over_heads(model.hidden(), model.heads(), "num_attention_heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  read_dense_mlp(config, model);
  model.set_gated_mlp(true);
  model.set_norm("rms");
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", false));
}

constexpr HuggingFaceFamily kDenseFamilies[] = {
    {"apertus", read_apertus},
    {"aquila", read_llama},
    {"arcee", read_arcee},
    {"baichuan", read_baichuan},
    {"chatglm", read_chatglm},
    {"cohere", read_cohere},
    {"cohere2", read_cohere2},
    {"ernie4_5", read_ernie},
    {"exaone", read_exaone3},
    {"exaone4", read_exaone4},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3},
    {"gemma4_text", read_gemma4},
    {"glm", read_glm},
    {"glm4", read_glm4},
    {"glm4v_text", read_glm4},
    {"granite", read_llama},
    {"helium", read_llama},
    {"hunyuan_v1_dense", read_hunyuan_dense},
    {"hunyuan_vl_text", read_hunyuan_dense},
    {"internlm", read_internlm},
    {"internlm2", read_internlm},
    {"internlm3", read_internlm3},
    {"llama", read_llama},
    {"mimo", read_mimo},
    {"minicpm", read_minicpm},
    {"minicpm3", read_minicpm3},
    {"ministral", read_mistral},
    {"ministral3", read_mistral},
    {"mistral", read_mistral},
    {"nemotron", read_nemotron},
    {"olmo", read_olmo},
    {"olmo2", read_olmo2},
    {"olmo3", read_olmo3},
    {"persimmon", read_persimmon},
    {"phi3", read_phi3},
    {"phi3small", read_phi3_small},
    {"phi4mm", read_phi4mm},
    {"qwen", read_qwen1},
    {"qwen2", read_qwen2},
    {"qwen2_5_omni_text", read_qwen2},
    {"qwen2_5_vl", read_qwen2},
    {"qwen2_5_vl_text", read_qwen2},
    {"qwen2_vl", read_qwen2},
    {"qwen2_vl_text", read_qwen2},
    {"qwen3", read_qwen3},
    {"qwen3_omni_text", read_qwen3},
    {"qwen3_vl_text", read_qwen3},
    {"seed_oss", read_seed_oss},
    {"smollm3", read_smollm3},
    {"stablelm", read_stablelm},
    {"starcoder2", read_starcoder2},
    {"telechat3", read_llama},
    {"xverse", read_llama},
    {"Yi", read_llama},
    {"youtu_llm", read_minicpm3},
};

}  // namespace

std::span<const HuggingFaceFamily> dense_families() {
  return kDenseFamilies;
}

// Qwen 2 and 3 have a window, if they use it, in all layers from max_window_layers on.
void read_qwen_window(HuggingFaceConfig& config, file::Model& model) {
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

void read_qwen3_attention(HuggingFaceConfig& config, file::Model& model) {
  read_decoder(config, model, {.head_dim = 128});
  model.set_qk_norm(true);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  config.expect("use_qk_norm", true, " (queries and keys are normalised)");
  read_qwen_window(config, model);
}

void read_llama(HuggingFaceConfig& config, file::Model& model) {
  read_plain(config, model);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
}

void read_mistral(HuggingFaceConfig& config, file::Model& model) {
  read_plain(config, model);
  read_window(config, model, 0, "");
}

// Projections of q, k, v and of gate and up are one matrix each in the file: the shape is the same.
void read_phi3(HuggingFaceConfig& config, file::Model& model) {
  read_plain(config, model);
  read_window(config, model, 0, "");
}

void read_qwen2(HuggingFaceConfig& config, file::Model& model) {
  read_plain(config, model);
  model.set_qkv_bias(true);
  read_qwen_window(config, model);
}

void read_qwen3(HuggingFaceConfig& config, file::Model& model) {
  read_qwen3_attention(config, model);
  read_dense_mlp(config, model);
}

void read_minicpm(HuggingFaceConfig& config, file::Model& model) {
  if (config.has("kv_lora_rank")) return read_minicpm3(config, model);
  read_plain(config, model, {.tied = true});
  model.set_attention_bias(config.flag_or("attention_bias", false));
  if (config.count_or("num_experts", "experts.routed", 0) == 0) return;
  read_experts(config, model, {.intermediate = "intermediate_size"});
}

}  // namespace stepsim
