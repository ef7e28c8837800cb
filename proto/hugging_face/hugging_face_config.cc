#include "proto/hugging_face/hugging_face_config.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace stepsim {
namespace {

// Keys of any family that change the count of parameters or the kernels of a layer.
constexpr auto kShapingKeys =
    std::to_array<std::string_view>({"num_hidden_layers",
                                     "n_layer",
                                     "hidden_size",
                                     "n_embd",
                                     "n_embed",
                                     "intermediate_size",
                                     "n_inner",
                                     "num_attention_heads",
                                     "n_head",
                                     "num_key_value_heads",
                                     "head_dim",
                                     "vocab_size",
                                     "n_positions",
                                     "tie_word_embeddings",
                                     "attention_bias",
                                     "mlp_bias",
                                     "use_qkv_bias",
                                     "qkv_bias",
                                     "use_bias",
                                     "sliding_window",
                                     "sliding_window_pattern",
                                     "layer_types",
                                     "num_local_experts",
                                     "num_experts",
                                     "n_routed_experts",
                                     "n_shared_experts",
                                     "num_experts_per_tok",
                                     "experts_per_token",
                                     "moe_intermediate_size",
                                     "shared_expert_intermediate_size",
                                     "decoder_sparse_step",
                                     "mlp_only_layers",
                                     "first_k_dense_replace",
                                     "moe_layer_freq",
                                     "moe_layers",
                                     "interleave_moe_layer_step",
                                     "q_lora_rank",
                                     "kv_lora_rank",
                                     "qk_nope_head_dim",
                                     "qk_rope_head_dim",
                                     "v_head_dim",
                                     "num_nextn_predict_layers",
                                     "num_kv_shared_layers",
                                     "hidden_size_per_layer_input",
                                     "linear_num_value_heads",
                                     "ssm_state_size",
                                     "encoder_layers",
                                     "cross_attention_layers",
                                     "add_cross_attention",
                                     "num_layers",
                                     "n_layers",
                                     "d_model",
                                     "n_heads",
                                     "num_heads",
                                     "d_kv",
                                     "d_ff",
                                     "ffn_dim",
                                     "attn_config",
                                     "ffn_config",
                                     "linear_attn_config",
                                     "linear_num_key_heads",
                                     "full_attention_interval",
                                     "hybrid_override_pattern",
                                     "layers_block_type",
                                     "attn_layer_indices",
                                     "attn_layer_period",
                                     "attn_type_list",
                                     "mamba_n_heads",
                                     "mamba_num_heads",
                                     "mamba_d_state",
                                     "mamba_expand",
                                     "index_n_heads",
                                     "index_topk",
                                     "sparse_attention_config",
                                     "attention_chunk_size",
                                     "global_head_dim",
                                     "attention_k_eq_v",
                                     "enable_moe_block",
                                     "zero_expert_num",
                                     "moe_latent_size",
                                     "routed_expert_hidden_size",
                                     "moe_num_experts",
                                     "num_shared_experts",
                                     "num_shared_expert",
                                     "moe_num_shared_experts",
                                     "share_expert_dim",
                                     "share_q_dim",
                                     "shared_intermediate_size",
                                     "use_cla",
                                     "moe_layers_enum",
                                     "mlp_layer_types",
                                     "hybrid_layer_pattern",
                                     "swa_num_key_value_heads",
                                     "num_decoder_layers",
                                     "use_qk_norm",
                                     "compress_ratios",
                                     "hc_mult",
                                     "parallel_attn",
                                     "use_parallel_residual",
                                     "moe_shared_expert_intermediate_size",
                                     "attn_res_block_size"});

// Returns whether a value says nothing: null, false, 0, or an empty list.
bool is_nothing(const Json& value) {
  return value.is_null() || value == false || value == 0 || (value.is_array() && value.empty());
}

}  // namespace

bool HuggingFaceConfig::has(std::string_view key) {
  read_.emplace(key);
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

std::int64_t HuggingFaceConfig::whole(std::string_view key, std::string_view field,
                                      std::int64_t least) {
  const Json& value = at(key);
  const auto smallest = static_cast<double>(least);
  if (value.is_number_integer() && value.get<double>() >= smallest &&
      value.get<double>() < 0x1p62) {
    return value.get<std::int64_t>();
  }
  refuse(key, field,
         "must be a whole number of at least " + std::to_string(least) + ", is " + shown(value));
  return 0;
}

std::int64_t HuggingFaceConfig::size(std::string_view key, std::string_view field) {
  if (has(key)) return whole(key, field, 1);
  refuse(key, field, "must be given: a whole number of at least 1");
  return 0;
}

std::int64_t HuggingFaceConfig::size_or(std::string_view key, std::string_view field,
                                        std::int64_t absent) {
  return has(key) ? whole(key, field, 1) : absent;
}

std::int64_t HuggingFaceConfig::count_or(std::string_view key, std::string_view field,
                                         std::int64_t absent) {
  return has(key) ? whole(key, field, 0) : absent;
}

bool HuggingFaceConfig::flag_or(std::string_view key, bool absent) {
  if (!has(key)) return absent;
  if (at(key).is_boolean()) return at(key).get<bool>();
  refuse(key, "", "must be true or false, is " + shown(at(key)));
  return absent;
}

double HuggingFaceConfig::number_or(std::string_view key, double absent) {
  if (!has(key)) return absent;
  if (at(key).is_number()) return at(key).get<double>();
  refuse(key, "", "must be a number, is " + shown(at(key)));
  return absent;
}

std::vector<std::string> HuggingFaceConfig::texts(std::string_view key) {
  std::vector<std::string> result;
  if (!has(key)) return result;
  bool fine = at(key).is_array();
  for (const Json& value : fine ? at(key) : Json::array()) {
    fine = fine && value.is_string();
    if (fine) result.push_back(value.get<std::string>());
  }
  if (!fine) refuse(key, "", "must be a list of texts, is " + shown(at(key)));
  return result;
}

std::vector<std::int64_t> HuggingFaceConfig::numbers(std::string_view key) {
  std::vector<std::int64_t> result;
  if (!has(key)) return result;
  bool fine = at(key).is_array();
  for (const Json& value : fine ? at(key) : Json::array()) {
    fine = fine && value.is_number_integer();
    if (fine) result.push_back(value.get<std::int64_t>());
  }
  if (!fine) refuse(key, "", "must be a list of whole numbers, is " + shown(at(key)));
  return result;
}

std::string HuggingFaceConfig::text_or(std::string_view key, const std::string& absent) {
  return has(key) && at(key).is_string() ? at(key).get<std::string>() : absent;
}

std::int64_t HuggingFaceConfig::integer_or(std::string_view key, std::int64_t absent) {
  constexpr std::int64_t kLeast = -(std::int64_t{1} << 62);
  return has(key) ? whole(key, "", kLeast) : absent;
}

std::int64_t HuggingFaceConfig::uniform(std::string_view key, std::string_view field) {
  if (!has(key) || !at(key).is_array()) return size(key, field);
  const std::vector<std::int64_t> list = numbers(key);
  const bool alike = std::ranges::adjacent_find(list, std::not_equal_to<>()) == list.end();
  if (!list.empty() && alike && list.front() >= 1) return list.front();
  refuse(key, field,
         "must be the same whole number of at least 1 for all layers, is " + shown(at(key)));
  return 0;
}

HuggingFaceConfig HuggingFaceConfig::nested(std::string_view key) {
  static const Json kEmpty = Json::object();
  const bool is_object = has(key) && at(key).is_object();
  if (!is_object) refuse(key, "", "must be given: an object in braces");
  return {name_ + ": " + std::string(key), is_object ? at(key) : kEmpty, problems_};
}

void HuggingFaceConfig::expect(std::string_view key, const Json& value, std::string_view why) {
  if (!has(key) || at(key) == value) return;
  refuse(key, "", "must be " + shown(value) + std::string(why) + ", is " + shown(at(key)));
}

std::int64_t HuggingFaceConfig::divide_over_heads(std::int64_t width, std::int64_t heads,
                                                  std::string_view key) {
  if (width == 0 || heads == 0) return 1;  // reported already
  if (width % heads == 0) return width / heads;
  refuse(key, "head_dim",
         "must divide the hidden size (" + std::to_string(width) +
             ") where head_dim is not given, is " + std::to_string(heads));
  return 1;
}

void HuggingFaceConfig::refuse(std::string_view key, std::string_view field, std::string message) {
  if (!field.empty()) problems_.mark_reported("model." + std::string(field));
  problems_.add(name_ + ": " + std::string(key), std::move(message));
}

void HuggingFaceConfig::refuse_unread(std::string_view family) {
  for (const std::string_view key : kShapingKeys) {
    const auto found = object_.find(key);
    if (read_.contains(key) || found == object_.end() || is_nothing(*found)) continue;
    refuse(key, "",
           "is " + shown(*found) + ", but a " + std::string(family) + " has no such thing here");
  }
}

}  // namespace stepsim
