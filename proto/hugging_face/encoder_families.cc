// Encoders, and encoders with decoders.

#include "proto/hugging_face/families.h"
#include "proto/hugging_face/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

// Norms stand behind the additions: as many, on tensors of the same size, as behind the branches.
void read_bert(Config& config, file::Model& model) {
  read_decoder(config, model, {.tied = true});
  read_dense_mlp(config, model);
  set_gpt_block(model);
  model.set_causal(false);
  model.set_pre_norms(false);
  model.set_post_norms(true);
  model.set_embedding_norm(true);
  model.set_head_projection(true);
  model.set_learned_positions(config.size_or("max_position_embeddings", "learned_positions", 512) +
                              config.count_or("type_vocab_size", "learned_positions", 2));
  if (config.number_or("hidden_dropout_prob", 0) > 0) model.set_dropout(true);
  config.expect("position_embedding_type", "absolute", " (positions are learned)");
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
  const std::int64_t encoder = config.size("num_layers", "layers");
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
  model.set_gated_mlp(config.text_or("feed_forward_proj", "relu").find("gated") !=
                      std::string::npos);
  model.set_mixer_pattern(layers_where(
      model, [encoder](std::int64_t layer) { return layer < encoder; }, 'N', 'X'));
}

constexpr HuggingFaceFamily kEncoderFamilies[] = {
    {"bert", read_bert},
    {"modernbert", read_modernbert},
    {"mt5", read_t5},
    {"roberta", read_bert},
    {"t5", read_t5},
    {"umt5", read_t5},
    {"xlm-roberta", read_bert},
};

}  // namespace

std::span<const HuggingFaceFamily> encoder_families() {
  return kEncoderFamilies;
}

}  // namespace stepsim
