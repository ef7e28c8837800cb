// Encoders, and encoders with decoders.

#include <algorithm>
#include <string>
#include <utility>

#include "proto/hugging_face/families/families.h"
#include "proto/hugging_face/families/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

// `unused`: rows of the table of positions that no token takes. Norms stand behind the additions:
// as many, on tensors of the same size, as behind the branches.
void read_bert(Config& config, file::Model& model, std::int64_t unused) {
  read_decoder(config, model, {.tied = true});
  read_dense_mlp(config, model);
  set_gpt_block(model);
  model.set_causal(false);
  model.set_pre_norms(false);
  model.set_post_norms(true);
  model.set_embedding_norm(true);
  model.set_head_projection(true);
  const std::int64_t positions =
      config.size_or("max_position_embeddings", "learned_positions", 512);
  model.set_learned_positions(std::max(positions - unused, std::int64_t{0}));
  model.set_extra_rows(unused + config.count_or("type_vocab_size", "extra_rows", 2));
  if (config.number_or("hidden_dropout_prob", 0) > 0) model.set_dropout(true);
  config.expect("position_embedding_type", "absolute", " (positions are learned)");
}

void read_bert(Config& config, file::Model& model) {
  read_bert(config, model, 0);
}

// The first positions are those of padding.
void read_roberta(Config& config, file::Model& model) {
  read_bert(config, model, 2);
}

// A window of local_attention tokens, half of it on each side.
void read_modernbert(Config& config, file::Model& model) {
  read_decoder(config, model, {.tied = true});
  read_dense_mlp(config, model);
  model.set_causal(false);
  model.set_norm(config.flag_or("norm_bias", false) ? "layer" : "layer_without_bias");
  model.set_embedding_norm(true);
  model.set_head_projection(true);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
  const std::int64_t every = config.period_or("global_attn_every_n_layers", "mixer_pattern", 3);
  model.set_window((config.size_or("local_attention", "window", 128) + 1) / 2);
  model.set_mixer_pattern(layers_where(
      model, [every](std::int64_t layer) { return every > 0 && layer % every == 0; }, 'G', 'L'));
}

// The layers of the encoder, then those of the decoder. Biases by relative position, a number a
// head and distance, are not counted.
void read_t5(Config& config, file::Model& model) {
  const std::int64_t encoder = read_layers(config, "num_layers");
  const std::int64_t decoder = config.size_or("num_decoder_layers", "layers", encoder);
  model.set_layers(encoder + decoder);
  model.set_hidden(config.size("d_model", "hidden"));
  model.set_heads(config.size("num_heads", "heads"));
  model.set_kv_heads(model.heads());
  model.set_head_dim(config.size("d_kv", "head_dim"));
  model.set_intermediate(config.size("d_ff", "intermediate"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  model.set_norm("rms");
  model.set_rotary(false);
  config.has("n_positions");  // the usual length; positions are relative
  const std::string activation = config.choice_or(
      "feed_forward_proj",
      {"relu", "gelu", "gelu_new", "silu", "gated-relu", "gated-gelu", "gated-silu"}, "relu");
  model.set_gated_mlp(activation.starts_with("gated"));
  model.set_mixer_pattern(layers_where(
      model, [encoder](std::int64_t layer) { return layer < encoder; }, 'N', 'X'));
}

// BART: norms behind the additions, a table of positions for each side. The second norm behind an
// embedding stands for the decoder's.
void read_bart(Config& config, file::Model& model) {
  const std::int64_t encoder = read_layers(config, "encoder_layers");
  const std::int64_t decoder = read_layers(config, "decoder_layers");
  model.set_layers(encoder + decoder);
  model.set_hidden(config.size("d_model", "hidden"));
  model.set_heads(config.size("encoder_attention_heads", "heads"));
  model.set_kv_heads(model.heads());
  model.set_head_dim(
      config.divide_over_heads(model.hidden(), model.heads(), "encoder_attention_heads"));
  model.set_intermediate(config.size("encoder_ffn_dim", "intermediate"));
  for (const auto& [key, size] : {std::pair{"decoder_attention_heads", model.heads()},
                                  std::pair{"decoder_ffn_dim", model.intermediate()}}) {
    const std::int64_t own = config.size_or(key, "", size);
    config.refuse_if(own != size && own * size > 0, key,
                     "must be as on the encoder's side (" + std::to_string(size) + "), is " +
                         std::to_string(own));
  }
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  constexpr std::int64_t kUnused = 2;  // the first positions are those of padding
  model.set_learned_positions(config.size_or("max_position_embeddings", "learned_positions", 1024));
  model.set_extra_rows(2 * kUnused + model.learned_positions());
  set_gpt_block(model);
  model.set_embedding_norm(true);
  model.set_pre_norms(false);
  model.set_post_norms(true);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", true));
  if (config.number_or("dropout", 0.1) > 0) model.set_dropout(true);
  for (const char* repeated : {"num_hidden_layers", "hidden_size"}) config.has(repeated);
  model.set_mixer_pattern(layers_where(
      model, [encoder](std::int64_t layer) { return layer < encoder; }, 'N', 'X'));
}

constexpr HuggingFaceFamily kEncoderFamilies[] = {
    {"bart", read_bart}, {"bert", read_bert},           {"modernbert", read_modernbert},
    {"mt5", read_t5},    {"roberta", read_roberta},     {"t5", read_t5},
    {"umt5", read_t5},   {"xlm-roberta", read_roberta},
};

}  // namespace

std::span<const HuggingFaceFamily> encoder_families() {
  return kEncoderFamilies;
}

}  // namespace stepsim
