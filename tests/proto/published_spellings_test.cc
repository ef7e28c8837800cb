// Files as they are published: keys that are left to the class of a nested configuration, keys that
// say a size twice, names of families that a wrapper or an older release gives.

#include <gtest/gtest.h>

#include <string>

#include "tests/support/experiment_case.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

class PublishedSpellingsTest : public ExperimentCase {
 protected:
  ModelSpec model_of(const std::string& config) const {
    return load_experiment(from_flags(write("config.json", config), "dgx-h100-8", kPlan)).model;
  }
  Lines problems_with(const std::string& config) const {
    return problems_of(from_flags(write("config.json", config), "dgx-h100-8", kPlan));
  }
  // The count of the published weights, in billions.
  void expect(const std::string& config, double published) const {
    const double counted = static_cast<double>(parameter_count(model_of(config))) / 1e9;
    EXPECT_NEAR(counted, published, published * 0.005) << config;
  }

  static constexpr const char* kPlan = "dp=8,global-batch=8,sequence=128";
};

// transformers leaves out of a text_config what the class has anyway.
TEST_F(PublishedSpellingsTest, ATextLeavesSizesToItsClass) {
  const std::string llava = R"({"model_type": "llava", "vision_config": {}, "text_config":
    {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32064}})";
  expect(llava, 6.739);
  EXPECT_EQ(model_of(llava).note,
            "its vision part is not counted; hidden_size, intermediate_size, num_hidden_layers, "
            "num_attention_heads are those of its class");
  expect(R"({"model_type": "llava", "text_config": {"model_type": "mistral", "head_dim": 128,
    "hidden_size": 5120, "intermediate_size": 14336, "num_hidden_layers": 40,
    "num_key_value_heads": 8, "sliding_window": null, "vocab_size": 131072}})",
         12.25);
  expect(R"({"model_type": "qwen2_audio", "audio_config": {}, "text_config": {"model_type": "qwen2",
    "intermediate_size": 11008, "sliding_window": 32768, "vocab_size": 156032}})",
         7.755);
  expect(R"({"model_type": "paligemma", "text_config": {"model_type": "gemma", "hidden_size": 2048,
    "intermediate_size": 16384, "num_attention_heads": 8, "num_hidden_layers": 18,
    "num_key_value_heads": 1, "vocab_size": 257216}})",
         2.508);
}

// A window that is null is none; one that is left out is the class's.
TEST_F(PublishedSpellingsTest, NullIsNotLeftToTheClass) {
  const auto window = [&](const std::string& key) {
    return model_of(R"({"model_type": "llava", "text_config": {"model_type": "mistral")" + key +
                    "}}")
        .attention.window;
  };
  EXPECT_EQ(window(""), 4096);
  EXPECT_EQ(window(R"(, "sliding_window": null)"), 0);
}

TEST_F(PublishedSpellingsTest, AModelByItselfGivesItsSizes) {
  EXPECT_EQ(problems_with(R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32})"),
            Lines{"config.json: intermediate_size: must be given: a whole number of at least 1"});
}

// The outer name stands for its text's, where the text has none.
TEST_F(PublishedSpellingsTest, AWrapperNamesTheFamilyOfItsText) {
  const std::string sizes = R"("vocab_size": 151936, "hidden_size": 2560, "head_dim": 128,
    "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
    "num_key_value_heads": 8, "tie_word_embeddings": true)";
  expect(R"({"model_type": "qwen3_vl", "text_config": {)" + sizes + "}}", 4.022);
  expect(R"({"model_type": "qwen3_vl", )" + sizes + "}", 4.022);
}

// Sizes given twice, under the names of other families, bring nothing in.
TEST_F(PublishedSpellingsTest, RepeatedSizesAreNoShapesOfTheirOwn) {
  expect(R"({"model_type": "chatglm", "add_bias_linear": false, "add_qkv_bias": true,
    "ffn_hidden_size": 13696, "hidden_size": 4096, "kv_channels": 128,
    "multi_query_attention": true, "multi_query_group_num": 2, "num_attention_heads": 32,
    "num_hidden_layers": 40, "num_layers": 40, "padded_vocab_size": 151552,
    "post_layer_norm": true, "rmsnorm": true})",
         9.4);
  expect(R"({"model_type": "mamba", "conv_kernel": 4, "d_inner": 5120, "d_model": 2560, "expand": 2,
    "hidden_size": 2560, "intermediate_size": 5120, "n_layer": 64, "num_hidden_layers": 64,
    "ssm_cfg": {}, "state_size": 16, "time_step_rank": 160, "vocab_size": 50280})",
         2.768);
  expect(R"({"model_type": "mamba2", "chunk_size": 256, "conv_kernel": 4, "expand": 2,
    "head_dim": 64, "hidden_size": 4096, "intermediate_size": 8192, "n_groups": 8,
    "num_heads": 128, "num_hidden_layers": 64, "state_size": 128, "vocab_size": 32768,
    "tie_word_embeddings": false})",
         7.285);
  expect(R"({"model_type": "falcon_mamba", "conv_kernel": 4, "expand": 16, "hidden_size": 4096,
    "intermediate_size": 8192, "num_hidden_layers": 64, "state_size": 16, "time_step_rank": 256,
    "vocab_size": 65024, "tie_word_embeddings": false})",
         7.273);
  expect(R"({"model_type": "hunyuan_v1_dense", "attention_head_dim": 128, "cla_share_factor": 2,
    "head_dim": 128, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_experts": 1, "num_experts_per_tok": 1, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "num_shared_expert": 1, "tie_word_embeddings": true, "use_cla": false, "use_qk_norm": true,
    "vocab_size": 128256})",
         7.505);
  expect(R"({"model_type": "lfm2", "block_auto_adjust_ff_dim": true, "block_dim": 1024,
    "block_ff_dim": 6656, "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256,
    "conv_L_cache": 3, "conv_bias": false, "full_attn_idxs": [2, 5, 8, 10, 12, 14],
    "hidden_size": 1024, "num_attention_heads": 16, "num_heads": 16, "num_hidden_layers": 16,
    "num_key_value_heads": 8, "vocab_size": 65536})",
         0.3545);
}

// Granite 4.0 micro gives the sizes of states that none of its layers has.
TEST_F(PublishedSpellingsTest, SizesOfNoLayerAreNothing) {
  std::string layers;
  for (int layer = 0; layer < 40; ++layer)
    layers += layer > 0 ? R"(, "attention")" : R"("attention")";
  expect(R"({"model_type": "granitemoehybrid", "hidden_size": 2560, "intermediate_size": 8192,
    "layer_types": [)" +
             layers + R"(], "mamba_chunk_size": 256, "mamba_conv_bias": true,
    "mamba_d_conv": 4, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_expand": 2,
    "mamba_n_groups": 1, "mamba_n_heads": 80, "mamba_proj_bias": false, "num_attention_heads": 40,
    "num_experts_per_tok": 0, "num_hidden_layers": 40, "num_key_value_heads": 8,
    "num_local_experts": 0, "position_embedding_type": "rope", "shared_intermediate_size": 8192,
    "tie_word_embeddings": true, "vocab_size": 100352})",
         3.40);
}

// A list of one word for all layers says nothing that a family must read; one of two words does.
TEST_F(PublishedSpellingsTest, LayersOfTwoKindsAreNotPassedOver) {
  const auto with = [](const std::string& types) {
    return R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 512,
      "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
      "layer_types": )" +
           types + "}";
  };
  EXPECT_EQ(problems_with(with(R"(["full_attention", "full_attention"])")), Lines{});
  EXPECT_EQ(problems_with(with(R"(["full_attention", "mamba"])")),
            Lines{"config.json: layer_types: is [\"full_attention\",\"mamba\"], but a llama has no "
                  "such thing here"});
}

TEST_F(PublishedSpellingsTest, OlderNamesAreRead) {
  expect(R"({"model_type": "RefinedWebModel", "alibi": false, "bias": false, "hidden_size": 4544,
    "multi_query": true, "n_head": 71, "n_layer": 32, "parallel_attn": true,
    "vocab_size": 65024})",
         6.922);
  expect(R"({"model_type": "RefinedWeb", "alibi": false, "bias": false, "hidden_size": 8192,
    "n_head": 128, "n_head_kv": 8, "n_layer": 60, "parallel_attn": true, "vocab_size": 65024})",
         41.30);
  expect(R"({"d_model": 2560, "n_layer": 64, "vocab_size": 50277, "ssm_cfg": {}, "rms_norm": true,
    "pad_vocab_size_multiple": 8})",
         2.768);
  expect(R"({"d_model": 2560, "d_intermediate": 0, "n_layer": 64, "vocab_size": 50277,
    "ssm_cfg": {"layer": "Mamba2"}, "attn_layer_idx": [], "attn_cfg": {}, "rms_norm": true,
    "pad_vocab_size_multiple": 16, "tie_embeddings": true})",
         2.70);
}

// DeepSeek-OCR's text has plain attention: latent sizes are null or 0.
TEST_F(PublishedSpellingsTest, LatentAttentionCanBeSwitchedOff) {
  const ModelSpec model = model_of(R"({"model_type": "deepseek_vl_v2", "vision_config": {},
    "language_config": {"first_k_dense_replace": 1, "hidden_size": 1280, "intermediate_size": 6848,
      "kv_lora_rank": null, "moe_intermediate_size": 896, "n_routed_experts": 64,
      "n_shared_experts": 2, "num_attention_heads": 10, "num_experts_per_tok": 6,
      "num_hidden_layers": 12, "num_key_value_heads": 10, "q_lora_rank": null,
      "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "use_mla": false, "v_head_dim": 0,
      "vocab_size": 129280}})");
  EXPECT_EQ(model.latent, LatentSpec{});
  EXPECT_EQ(model.attention.head_dim, 128);
}

// ERNIE with pictures: experts of the text, then those of pictures.
TEST_F(PublishedSpellingsTest, ExpertsOfPicturesAreLeftOut) {
  const ModelSpec model = model_of(R"({"model_type": "ernie4_5_moe_vl", "hidden_size": 2560,
    "intermediate_size": 12288, "moe_intermediate_size": [1536, 512], "moe_k": 6,
    "moe_layer_end_index": [29, 28], "moe_layer_interval": 1, "moe_layer_start_index": [1, 1],
    "moe_num_experts": [64, 64], "moe_num_shared_experts": 2, "num_attention_heads": 20,
    "num_hidden_layers": 28, "num_key_value_heads": 4, "tie_word_embeddings": true,
    "vocab_size": 103424, "vision_config": {"depth": 32}})");
  EXPECT_EQ(model.experts.intermediate, 1536);
  EXPECT_EQ(model.note, "its experts of pictures are not counted; its vision part is not counted");
  EXPECT_NEAR(static_cast<double>(parameter_count(model)), 21.83e9, 0.11e9);
}

// MiniMax-M3's wrapper names the family; its experts are as wide as intermediate_size.
TEST_F(PublishedSpellingsTest, TheTextOfMiniMaxM3IsRead) {
  const ModelSpec model = model_of(R"({"model_type": "minimax_m3_vl", "text_config": {
    "vocab_size": 1000, "hidden_size": 512, "intermediate_size": 256, "head_dim": 64,
    "dense_intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 2, "num_local_experts": 8, "num_experts_per_tok": 2,
    "n_shared_experts": 1, "shared_intermediate_size": 256, "moe_layer_freq": [0, 1],
    "sparse_attention_config": {"sparse_num_index_heads": 2, "sparse_index_dim": 64,
      "sparse_topk_blocks": 4, "sparse_block_size": 16, "sparse_attention_freq": [0, 1]}}})");
  EXPECT_EQ(model.experts.intermediate, 256);
  EXPECT_EQ(model.mlp_pattern, "DE");
}

TEST_F(PublishedSpellingsTest, WeightsOfSeveralTypesAreThoseOfMost) {
  const auto type = [&](const std::string& config) {
    return model_of(R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 512,
      "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
      "quantization_config": )" +
                    config + "}")
        .weight_type;
  };
  EXPECT_EQ(type(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "W4A16_NVFP4"},
                         "c": {"quant_algo": "W4A16_NVFP4"}}})"),
            DataType::kNvfp4);
  EXPECT_EQ(type(R"({"quant_algo": "FP8", "producer": {"name": "modelopt"}})"), DataType::kFp8);
  EXPECT_EQ(type(R"({"quant_method": "auto-round", "bits": 4})"), DataType::kInt4);
}

}  // namespace
}  // namespace stepsim
