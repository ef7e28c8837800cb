#include "proto/hugging_face/class_defaults.h"

#include <algorithm>
#include <string_view>

namespace stepsim {
namespace {

struct ClassDefaults {
  std::string_view model_type;
  std::string_view sizes;  // JSON
};

constexpr ClassDefaults kClassDefaults[] = {
    {"cohere", R"({"hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
      "num_attention_heads": 64, "vocab_size": 256000})"},
    {"cohere2", R"({"hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
      "num_attention_heads": 64, "vocab_size": 256000})"},
    {"deepseek_v3", R"({"hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
      "num_attention_heads": 128, "num_key_value_heads": 128, "vocab_size": 129280,
      "moe_intermediate_size": 2048, "n_shared_experts": 1, "n_routed_experts": 256,
      "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "qk_nope_head_dim": 128, "num_experts_per_tok": 8, "first_k_dense_replace": 3})"},
    {"gemma", R"({"hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
      "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 256000})"},
    {"gemma2", R"({"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
      "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 256000})"},
    {"glm4v_moe_text", R"({"hidden_size": 4096, "intermediate_size": 10944,
      "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8,
      "vocab_size": 151424, "moe_intermediate_size": 1408, "num_experts_per_tok": 8,
      "n_shared_experts": 1, "n_routed_experts": 128, "first_k_dense_replace": 1})"},
    {"glm4v_text", R"({"hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
      "num_attention_heads": 32, "num_key_value_heads": 2, "vocab_size": 151552})"},
    {"granite", R"({"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 32000})"},
    {"llama", R"({"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 32000})"},
    {"llama4_text", R"({"hidden_size": 5120, "intermediate_size": 8192,
      "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
      "num_key_value_heads": 8, "vocab_size": 202048, "num_local_experts": 16,
      "num_experts_per_tok": 1})"},
    {"ministral3", R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 34,
      "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "vocab_size": 131072})"},
    {"mistral", R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
      "sliding_window": 4096})"},
    {"mixtral", R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
      "num_local_experts": 8, "num_experts_per_tok": 2})"},
    {"mllama_text_model", R"({"hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
      "vocab_size": 128256})"},
    {"opt", R"({"hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12,
      "num_attention_heads": 12, "max_position_embeddings": 2048, "vocab_size": 50272})"},
    {"persimmon", R"({"hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 36,
      "num_attention_heads": 64, "vocab_size": 262144})"},
    {"phi", R"({"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
      "num_attention_heads": 32, "vocab_size": 51200})"},
    {"phi3", R"({"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 32064})"},
    {"qwen2", R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 151936})"},
    {"qwen2_5_vl_text", R"({"hidden_size": 8192, "intermediate_size": 29568,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
      "vocab_size": 152064})"},
    {"qwen2_vl_text", R"({"hidden_size": 8192, "intermediate_size": 29568,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
      "vocab_size": 152064})"},
    {"qwen3", R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 151936})"},
    {"qwen3_moe", R"({"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
      "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 151936,
      "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8})"},
    {"qwen3_vl_text", R"({"hidden_size": 4096, "intermediate_size": 22016,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
      "vocab_size": 151936})"},
};

}  // namespace

std::string add_class_defaults(Json& object) {
  const auto type = object.find("model_type");
  if (type == object.end() || !type->is_string()) return "";
  const auto found =
      std::ranges::find(kClassDefaults, type->get<std::string>(), &ClassDefaults::model_type);
  if (found == std::end(kClassDefaults)) return "";
  const Json sizes = Json::parse(found->sizes);
  std::string added;
  for (const auto& [key, value] : sizes.items()) {
    if (object.contains(key)) continue;
    object[key] = value;
    added += (added.empty() ? "" : ", ") + key;
  }
  return added;
}

}  // namespace stepsim
