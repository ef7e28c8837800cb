// Decoders that come from GPT-2: layer norms, MLPs without a gate, mostly with biases.

#include <algorithm>
#include <string>

#include "proto/hugging_face/families/families.h"
#include "proto/hugging_face/families/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

// Falcon: one norm for both branches; the newer form has two, and more key-value heads.
void read_falcon(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, config.either("num_hidden_layers", "n_layer")));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size(config.either("num_attention_heads", "n_head"), "heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  const bool is_new = config.flag_or("new_decoder_architecture", config.has("n_head_kv"));
  const bool one_key = config.flag_or("multi_query", true);
  const std::int64_t grouped =
      config.size_or(config.either("num_kv_heads", "n_head_kv"), "kv_heads", model.heads());
  model.set_kv_heads(is_new ? grouped : one_key ? 1 : model.heads());
  model.set_head_dim(
      config.divide_over_heads(model.hidden(), model.heads(), "num_attention_heads"));
  model.set_intermediate(config.size_or("ffn_hidden_size", "intermediate", 4 * model.hidden()));
  model.set_gated_mlp(false);
  model.set_norm("layer");
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  const bool bias = config.flag_or("bias", false);
  model.set_attention_bias(bias);
  model.set_mlp_bias(bias);
  model.set_rotary(!config.flag_or("alibi", false));
  const bool parallel = config.flag_or("parallel_attn", true);
  model.set_parallel_branches(is_new || parallel);
  model.set_parallel_norms(is_new && config.size_or("num_ln_in_parallel_attn", "", 2) == 2);
}

void read_opt(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, "num_hidden_layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size("num_attention_heads", "heads"));
  model.set_kv_heads(model.heads());
  model.set_head_dim(
      config.divide_over_heads(model.hidden(), model.heads(), "num_attention_heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_intermediate(config.size("ffn_dim", "intermediate"));
  model.set_learned_positions(config.size("max_position_embeddings", "learned_positions"));
  model.set_extra_rows(2);  // the first two positions are never looked up
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  set_gpt_block(model);
  if (!config.flag_or("enable_bias", true)) {
    model.set_attention_bias(false);
    model.set_mlp_bias(false);
  }
  config.refuse_if(config.size_or("word_embed_proj_dim", "", model.hidden()) != model.hidden(),
                   "word_embed_proj_dim",
                   "tables narrower than the stream are not modelled: must be hidden_size");
  config.expect("do_layer_norm_before", true, " (norms stand before the branches here)");
  if (config.number_or("dropout", 0) > 0) model.set_dropout(true);
}

// GPT-NeoX, Pythia: two norms, one for each of the parallel branches.
void read_gpt_neox(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  set_gpt_block(model);
  const bool bias = config.flag_or("attention_bias", true);
  model.set_attention_bias(bias);
  const bool parallel = config.flag_or("use_parallel_residual", true);
  model.set_parallel_branches(parallel);
  model.set_parallel_norms(parallel);
}

// Sizes under the names of GPT-2, which others share.
void read_gpt_sizes(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, "n_layer"));
  model.set_hidden(config.size("n_embd", "hidden"));
  model.set_heads(config.size("n_head", "heads"));
  model.set_kv_heads(model.heads());
  model.set_head_dim(config.divide_over_heads(model.hidden(), model.heads(), "n_head"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_intermediate(config.size_or("n_inner", "intermediate", 4 * model.hidden()));
  set_gpt_block(model);
}

void read_gpt2(Config& config, file::Model& model) {
  read_gpt_sizes(config, model);
  model.set_learned_positions(config.size("n_positions", "learned_positions"));
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  config.expect("add_cross_attention", false, "");
  if (config.number_or("resid_pdrop", 0) > 0) model.set_dropout(true);
}

// With ALiBi, positions are neither rotated nor learned.
void read_bloom(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, config.either("n_layer", "num_hidden_layers")));
  model.set_hidden(config.size(config.either("hidden_size", "n_embed"), "hidden"));
  model.set_heads(config.size(config.either("n_head", "num_attention_heads"), "heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_intermediate(4 * model.hidden());
  model.set_kv_heads(model.heads());
  model.set_head_dim(config.divide_over_heads(model.hidden(), model.heads(), "n_head"));
  model.set_rotary(false);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  set_gpt_block(model);
  model.set_embedding_norm(true);
  if (config.number_or("hidden_dropout", 0) > 0) model.set_dropout(true);
}
// Phi-1, 1.5 and 2: one norm for both branches. The head's bias is not counted.
void read_phi(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_dense_mlp(config, model);
  set_gpt_block(model);
  model.set_parallel_branches(true);
  config.expect("qk_layernorm", false, " (queries and keys are not normalised here)");
}

// GPT-J: rotated, one norm for both branches, no biases in attention. The head's is not counted.
void read_gptj(Config& config, file::Model& model) {
  read_gpt_sizes(config, model);
  config.has("n_positions");  // the usual length: positions are rotated
  config.has("n_ctx");
  model.set_attention_bias(false);
  model.set_parallel_branches(true);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", false));
}

// StarCoder: GPT-2 with one head of keys and values.
void read_gpt_bigcode(Config& config, file::Model& model) {
  read_gpt_sizes(config, model);
  model.set_learned_positions(config.size("n_positions", "learned_positions"));
  if (config.flag_or("multi_query", true)) model.set_kv_heads(1);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  if (config.number_or("resid_pdrop", 0.1) > 0) model.set_dropout(true);
}

// GPT-Neo: GPT-2 with a window in every second layer. Only results of attention have a bias, which
// is not counted.
void read_gpt_neo(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, "num_layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size("num_heads", "heads"));
  model.set_kv_heads(model.heads());
  model.set_head_dim(config.divide_over_heads(model.hidden(), model.heads(), "num_heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_intermediate(config.size_or("intermediate_size", "intermediate", 4 * model.hidden()));
  set_gpt_block(model);
  model.set_attention_bias(false);
  model.set_learned_positions(config.size("max_position_embeddings", "learned_positions"));
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  const std::string letters =
      layer_letters(config, model, "attention_layers", {{"global", 'G'}, {"local", 'L'}});
  model.set_mixer_pattern(letters.empty() ? "GL" : letters);
  model.set_window(config.size_or("window_size", "window", 256));
  if (model.mixer_pattern().find('L') == std::string::npos) model.clear_window();
}

// MPT: ALiBi or learned positions, no biases.
void read_mpt(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, "n_layers"));
  model.set_hidden(config.size("d_model", "hidden"));
  model.set_heads(config.size("n_heads", "heads"));
  model.set_head_dim(config.divide_over_heads(model.hidden(), model.heads(), "n_heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_intermediate(config.size_or("expansion_ratio", "intermediate", 4) * model.hidden());
  set_gpt_block(model);
  config.has("ffn_config");
  if (config.flag_or("no_bias", true)) {
    model.set_norm("layer_without_bias");
    model.set_attention_bias(false);
    model.set_mlp_bias(false);
  }
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  model.set_kv_heads(model.heads());
  model.set_rotary(false);
  bool alibi = false;
  if (config.has("attn_config")) {
    Config attention = config.nested("attn_config");
    alibi = attention.flag_or("alibi", false);
    model.set_kv_heads(attention.size_or("kv_n_heads", "kv_heads", model.heads()));
    if (attention.text_or("attn_type", "") == "multiquery_attention") model.set_kv_heads(1);
    attention.expect("qk_ln", false, " (queries and keys are not normalised here)");
  }
  if (!alibi) model.set_learned_positions(config.size("max_seq_len", "learned_positions"));
}

constexpr HuggingFaceFamily kGptFamilies[] = {
    {"bloom", read_bloom},
    {"codegen", read_gptj},
    {"RefinedWeb", read_falcon},  // Falcon before transformers had it
    {"RefinedWebModel", read_falcon},
    {"falcon", read_falcon},
    {"gpt2", read_gpt2},
    {"gpt_bigcode", read_gpt_bigcode},
    {"gpt_neo", read_gpt_neo},
    {"gpt_neox", read_gpt_neox},
    {"gptj", read_gptj},
    {"mpt", read_mpt},
    {"opt", read_opt},
    {"phi", read_phi},
};

}  // namespace

std::span<const HuggingFaceFamily> gpt_families() {
  return kGptFamilies;
}

}  // namespace stepsim
