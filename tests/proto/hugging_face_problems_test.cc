// What a config.json must not say: each is a problem under its own key, and nothing is read past.

#include <gtest/gtest.h>

#include "proto/hugging_face/families/hugging_face_families.h"
#include "tests/support/experiment_case.h"

namespace stepsim {
namespace {

class HuggingFaceProblemsTest : public ExperimentCase {
 protected:
  // The problems of a small model of a family with these keys besides.
  Lines problems_of_family(const std::string& family, const std::string& keys) const {
    std::string sizes =
        R"("hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8)";
    for (const std::string usual : {R"("vocab_size": 1000)", R"("num_hidden_layers": 4)"}) {
      const bool is_given = keys.find(usual.substr(0, usual.find(':'))) != std::string::npos;
      if (!is_given) sizes += ", " + usual;
    }
    const std::string text =
        R"({"model_type": ")" + family + "\", " + sizes + (keys.empty() ? "" : ", " + keys) + "}";
    return problems_of(
        from_flags(write("config.json", text), "dgx-h100-8", "dp=8,global-batch=8,sequence=128"));
  }
  // REQUIRES: there is one problem.
  void expect(const std::string& family, const std::string& keys, const std::string& problem) {
    EXPECT_EQ(problems_of_family(family, keys), Lines{"config.json: " + problem}) << keys;
  }
};

constexpr const char* kMamba =
    R"("mamba_n_heads": 16, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 64)";

TEST_F(HuggingFaceProblemsTest, RatiosOfDeepSeekV4AreOneALayer) {
  const std::string sizes = R"("head_dim": 64, "num_key_value_heads": 1, "q_lora_rank": 64,
    "o_lora_rank": 32, "o_groups": 4, "qk_rope_head_dim": 16, "index_n_heads": 4,
    "index_head_dim": 32, "index_topk": 16, "sliding_window": 32, "hc_mult": 4,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128,
    "compress_ratios": )";
  EXPECT_EQ(problems_of_family("deepseek_v4", sizes + "[0, 4, 128, 4]"), Lines{});
  expect("deepseek_v4", sizes + "[0, 4, 128, 64]",
         "compress_ratios: must be 0, 4 or one other number of at least 2; entry 3 is 64");
  expect("deepseek_v4", sizes + "[0, 4, 128]",
         "compress_ratios: must have an entry for each of the 4 layers, and may have one for each "
         "of the 0 modules of prediction; has 3");
}

TEST_F(HuggingFaceProblemsTest, LayersOfKimiAreCountedFromOne) {
  const std::string sizes = R"("kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
    "v_head_dim": 32, "num_experts": 8, "num_experts_per_token": 2, "moe_intermediate_size": 64,
    "num_key_value_heads": 8, "linear_attn_config": {"num_heads": 8, "head_dim": 64, )";
  const auto with = [&](const std::string& lists) { return sizes + lists + "}"; };
  EXPECT_EQ(problems_of_family("kimi_linear", with(R"("full_attn_layers": [4])")), Lines{});
  for (const char* wrong : {"0", "999"}) {
    expect("kimi_linear", with(std::string(R"("full_attn_layers": [)") + wrong + "]"),
           std::string("linear_attn_config: full_attn_layers: must list layers from 1 to 4; entry "
                       "0 is ") +
               wrong);
  }
  expect("kimi_linear", with(R"("full_attn_layers": [4], "kda_layers": [1, 2])"),
         "linear_attn_config: kda_layers: must list all 4 layers together with full_attn_layers; "
         "they list 3");
  expect("kimi_linear", with(R"("full_attn_layers": [4], "kda_layers": [1, 2, 4])"),
         "linear_attn_config: kda_layers: lists layer 4, as full_attn_layers does");
  expect("kimi_linear", R"("use_mla": false, )" + with(R"("full_attn_layers": [4])"),
         "use_mla: must be true (its attention is latent), is false");
}

TEST_F(HuggingFaceProblemsTest, LayersOutOfRangeAreNamed) {
  expect("bamba", std::string(R"("attn_layer_indices": [1, 4], )") + kMamba,
         "attn_layer_indices: must list layers from 0 to 3; entry 1 is 4");
  expect("jamba", R"("num_experts": 1, "attn_layer_period": 2, "attn_layer_offset": 2,
                     "expert_layer_period": 2, "expert_layer_offset": 1)",
         "attn_layer_offset: must be less than attn_layer_period (2), is 2");
  const std::string step3 = R"("moe_num_experts": 8, "moe_top_k": 2, "moe_intermediate_size": 64,
                               "moe_layers_enum": )";
  EXPECT_EQ(problems_of_family("step3_text", step3 + R"("1,2")"), Lines{});
  expect("step3_text", step3 + R"("1,x2")",
         "moe_layers_enum: must list layers from 0 to 3 with commas between them; entry 1 is "
         "\"x2\"");
  expect("step3_text", step3 + R"("1,9")",
         "moe_layers_enum: must list layers from 0 to 3 with commas between them; entry 1 is "
         "\"9\"");
  expect("step3_text", step3 + "3", "moe_layers_enum: must be a text, is 3");
  expect("glm4_moe", R"("n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1,
                        "moe_intermediate_size": 64, "first_k_dense_replace": 5)",
         "first_k_dense_replace: must be at most the 4 layers, is 5");
}

TEST_F(HuggingFaceProblemsTest, PatternsAreRead) {
  const std::string window = R"("sliding_window": 64, "sliding_window_pattern": )";
  EXPECT_EQ(problems_of_family("exaone4", window + R"("LLLG")"), Lines{});
  EXPECT_EQ(problems_of_family("exaone4", window + "4"), Lines{});
  for (const std::string text : {"XYZ", ""}) {
    expect("exaone4", window + "\"" + text + "\"",
           "sliding_window_pattern: must be letters L (with the window) and G (global), or the "
           "number of layers of which the last is global; is \"" +
               text + "\"");
  }
  expect("mimo_v2_flash", R"("n_routed_experts": 8, "num_experts_per_tok": 2,
                             "moe_intermediate_size": 64, "moe_layer_freq": [0, 1, 1, 1])",
         "hybrid_layer_pattern: must be given: a number a layer, 1 for one with the window and 0 "
         "for a global one");
  expect("nemotron_h",
         R"("hybrid_override_pattern": "M-*-", "mamba_num_heads": 16, "mamba_head_dim": 64,
            "n_groups": 8, "ssm_state_size": 128,
            "layers_block_type": ["mamba", "mlp", "attention", "mamba"])",
         "layers_block_type: must say the same as hybrid_override_pattern (M-*-), says M-*M");
}

TEST_F(HuggingFaceProblemsTest, ContradictionsAreNamed) {
  expect("falcon_h1", std::string(R"("mamba_d_ssm": 1000, )") + kMamba,
         "mamba_d_ssm: must be mamba_n_heads x mamba_d_head (1024), is 1000");
  expect("granitemoehybrid",
         std::string(R"("position_embedding_type": "alibi", "shared_intermediate_size": 64,
           "layer_types": ["mamba", "mamba", "mamba", "attention"], )") +
             kMamba,
         "position_embedding_type: must be rope, nope; is \"alibi\"");
  EXPECT_EQ(problems_of_family("llama", R"("num_hidden_layers": 2097152)"),
            Lines{"config.json: num_hidden_layers: must be a whole number of 1 to 1024, is "
                  "2097152"});
  EXPECT_EQ(problems_of_family("llama", R"("vocab_size": 4611686018427387904)"),
            Lines{"config.json: vocab_size: must be a whole number of 1 to 2097152, is "
                  "4611686018427387904"});
}

TEST_F(HuggingFaceProblemsTest, WeightsAreNamedByTheirKey) {
  const auto with = [](const std::string& text) { return R"("quantization_config": )" + text; };
  expect("llama", with(R"({"quant_method": "fp8", "weight_block_size": [0, -1]})"),
         "quantization_config: weight_block_size: must be two whole numbers of at least 1: the "
         "rows and columns of a block");
  expect("llama", with(R"({"quant_method": "gptq", "bits": 3})"),
         "quantization_config: bits: must be 4 or 8, is 3");
  expect("llama", with(R"({"quant_method": 7})"),
         "quantization_config: quant_method: must be a text, is 7");
}

TEST_F(HuggingFaceProblemsTest, AnActivationIsOneThatIsKnown) {
  const std::string t5 = R"({"model_type": "t5", "vocab_size": 1000, "d_model": 512, "d_kv": 64,
    "num_heads": 8, "d_ff": 1024, "num_layers": 2, "feed_forward_proj": "regated"})";
  EXPECT_EQ(problems_of(from_flags(write("config.json", t5), "dgx-h100-8",
                                   "dp=8,global-batch=8,sequence=128")),
            Lines{"config.json: feed_forward_proj: must be relu, gelu, gelu_new, silu, gated-relu, "
                  "gated-gelu, gated-silu; is \"regated\""});
}

// Nobody keeps a list of keys that shape a model by hand.
TEST_F(HuggingFaceProblemsTest, KeysThatShapeAModelFollowFromTheReaders) {
  const HuggingFaceConfig::Keys& keys = keys_of_families();
  for (const char* key : {"num_local_experts", "kv_lora_rank", "conv_L_cache", "block_configs",
                          "linear_attn_config", "hybrid_override_pattern", "use_cla", "alibi"}) {
    EXPECT_TRUE(keys.contains(key)) << key;
  }
  for (const char* key : {"max_position_embeddings", "rope_theta", "rms_norm_eps", "dropout"}) {
    EXPECT_FALSE(keys.contains(key)) << key;
  }
  expect("llama", R"("conv_L_cache": 3)", "conv_L_cache: is 3, but a llama has no such thing here");
}

}  // namespace
}  // namespace stepsim
