#include "proto/hugging_face/families/hugging_face_families.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "proto/hugging_face/families/families.h"

namespace stepsim {
namespace {

// Keys that some family asks for, but that say nothing of the shape in most files that have them.
constexpr std::string_view kOrdinaryKeys[] = {"max_position_embeddings",
                                              "max_window_layers",
                                              "position_embedding_type",
                                              "model_type",
                                              "quantization_config",
                                              "attention_dropout",
                                              "dropout",
                                              "resid_pdrop",
                                              "hidden_dropout",
                                              "hidden_dropout_prob",
                                              "residual_dropout",
                                              "resid_dropout",
                                              "type_vocab_size",
                                              "block_size",
                                              "feed_forward_proj",
                                              "n_positions",
                                              "kv_channels",
                                              "use_sliding_window",
                                              "max_seq_len",
                                              "n_ctx",
                                              "rotary_pct",
                                              "use_cache",
                                              "norm_type",
                                              "post_layer_norm",
                                              "scale_emb",
                                              "rms_norm",
                                              "pad_vocab_size_multiple",
                                              "ssm_cfg",
                                              "attn_cfg",
                                              "version",
                                              "d_inner"};

// Sizes under another family's name, which files often give besides their own, and sizes of a part
// whose own key (n_routed_experts, mamba_d_state) is not here: alone they bring nothing in.
constexpr std::string_view kRepeatedKeys[] = {"hidden_size",
                                              "d_model",
                                              "dim",
                                              "n_embd",
                                              "n_embed",
                                              "num_hidden_layers",
                                              "num_layers",
                                              "n_layer",
                                              "n_layers",
                                              "num_attention_heads",
                                              "num_heads",
                                              "n_head",
                                              "n_heads",
                                              "head_dim",
                                              "attention_head_dim",
                                              "num_query_groups",
                                              "num_kv_heads",
                                              "n_head_kv",
                                              "num_key_value_heads",
                                              "intermediate_size",
                                              "hidden_dim",
                                              "ffn_dim",
                                              "d_ff",
                                              "ffn_hidden_size",
                                              "n_inner",
                                              "ff_intermediate_size",
                                              "num_experts_per_tok",
                                              "num_experts_per_token",
                                              "experts_per_token",
                                              "moe_topk",
                                              "moe_intermediate_size",
                                              "num_shared_expert",
                                              "num_shared_experts",
                                              "n_shared_experts",
                                              "first_k_dense_replace",
                                              "moe_layer_freq",
                                              "decoder_sparse_step",
                                              "mlp_only_layers",
                                              "moe_layer_interval",
                                              "moe_layer_start_index",
                                              "moe_layer_end_index",
                                              "shared_expert_intermediate_size",
                                              "moe_shared_expert_intermediate_size",
                                              "shared_intermediate_size",
                                              "cla_share_factor",
                                              "expand",
                                              "mamba_expand",
                                              "mamba_chunk_size",
                                              "mamba_conv_bias",
                                              "mamba_d_conv",
                                              "mamba_d_head",
                                              "mamba_dt_rank",
                                              "mamba_n_groups",
                                              "mamba_n_heads",
                                              "mamba_proj_bias",
                                              "chunk_size",
                                              "conv_kernel",
                                              "use_conv_bias",
                                              "time_step_rank",
                                              "no_rope_layers",
                                              "no_rope_layer_interval",
                                              "sliding_window_pattern",
                                              "global_attn_every_n_layers",
                                              "num_nextn_predict_layers",
                                              "num_mtp_modules",
                                              "mtp_num_hidden_layers",
                                              "tie_embeddings",
                                              "use_mem_rope"};

struct NotRead {
  std::string_view model_type;
  std::string_view why;
};

constexpr NotRead kNotRead[] = {
    {"gemma3n", "its residual of several streams (altup_num_inputs) is not modelled"},
    {"gemma3n_text", "its residual of several streams (altup_num_inputs) is not modelled"},
    {"openelm", "its heads differ from layer to layer, which is not modelled"},
    {"ouro", "its layers run several times over, which is not modelled"},
    {"plamo2", "its mixers normalise within their projections, which is not modelled"},
    {"recurrentgemma", "its gated linear recurrence is not modelled"},
    {"recurrent_gemma", "its gated linear recurrence is not modelled"},
    {"rwkv", "its time mixing is not modelled"},
    {"rwkv5", "its time mixing is not modelled"},
    {"rwkv6", "its time mixing is not modelled"},
    {"rwkv7", "its time mixing is not modelled"},
    {"t5gemma", "encoders with windows, beside decoders of another size, are not modelled"},
    {"t5gemma2", "encoders with windows, beside decoders of another size, are not modelled"},
    {"whisper", "an encoder of sound, whose tokens are more than the text's, is not modelled"},
};

// Keys that a family asks for depend on what the file has: readers run over all and over nothing.
HuggingFaceConfig::Keys asked_keys() {
  HuggingFaceConfig::Keys keys;
  ProblemList nobody_reads;
  for (const HuggingFaceFamily& family : hugging_face_families()) {
    for (const bool has_all : {false, true}) {
      HuggingFaceConfig config = HuggingFaceConfig::listing(has_all, nobody_reads);
      file::Model model;
      family.read(config, model);
      keys.insert(config.asked().begin(), config.asked().end());
    }
  }
  for (const std::string_view key : kOrdinaryKeys) keys.erase(std::string(key));
  for (const std::string_view key : kRepeatedKeys) keys.erase(std::string(key));
  return keys;
}

}  // namespace

const HuggingFaceConfig::Keys& keys_of_families() {
  static const HuggingFaceConfig::Keys kKeys = asked_keys();
  return kKeys;
}

std::string_view reason_not_read(std::string_view model_type) {
  const auto found = std::ranges::find(kNotRead, model_type, &NotRead::model_type);
  return found == std::end(kNotRead) ? std::string_view() : found->why;
}

std::span<const HuggingFaceFamily> hugging_face_families() {
  static const std::vector<HuggingFaceFamily> kAll = [] {
    std::vector<HuggingFaceFamily> all;
    for (const auto& families : {dense_families(), gpt_families(), searched_families(),
                                 expert_families(), state_families(), linear_families(),
                                 encoder_families(), picture_families(), compressed_families()}) {
      all.insert(all.end(), families.begin(), families.end());
    }
    std::ranges::sort(all, {}, &HuggingFaceFamily::model_type);
    return all;
  }();
  return kAll;
}

}  // namespace stepsim
