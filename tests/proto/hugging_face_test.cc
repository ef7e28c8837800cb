#include "proto/hugging_face/hugging_face.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/experiment_case.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

class HuggingFaceTest : public ExperimentCase {
 protected:
  ModelSpec model_of(const std::string& config) const {
    return load_experiment(from_flags(write("config.json", config), "dgx-h100-8", kPlan)).model;
  }
  Lines problems_with(const std::string& config) const {
    return problems_of(from_flags(write("config.json", config), "dgx-h100-8", kPlan));
  }

  static constexpr const char* kPlan = "dp=8,global-batch=8,sequence=128";
};

TEST_F(HuggingFaceTest, ReadsLlama) {
  const ModelSpec model = model_of(R"({"model_type": "llama", "architectures": ["x"],
    "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "rope_scaling": null, "tie_word_embeddings": true, "attention_bias": true})");
  EXPECT_EQ(model.layers, 32);
  EXPECT_EQ(model.hidden, 4096);
  EXPECT_EQ(model.mlp.width, 14336);
  EXPECT_EQ(model.attention.heads, 32);
  EXPECT_EQ(model.attention.kv_heads, 8);
  EXPECT_EQ(model.attention.head_dim, 128) << "hidden_size / num_attention_heads";
  EXPECT_EQ(model.embedding.vocabulary, 128256);
  EXPECT_EQ(model.embedding.learned_positions, 0);
  EXPECT_TRUE(model.mlp.gated);
  EXPECT_TRUE(model.embedding.tied);
  EXPECT_TRUE(model.attention.bias);
  EXPECT_FALSE(model.mlp.bias);
  EXPECT_EQ(model.norms.kind, NormKind::kRms);
}

TEST_F(HuggingFaceTest, AConfigurationIsAnObjectThatNamesItsType) {
  const auto is_one = [](const char* text, const char* extension = ".json") {
    return is_hugging_face({.name = "config", .extension = extension, .text = text});
  };
  EXPECT_TRUE(is_one(R"({"model_type": "llama"})"));
  EXPECT_FALSE(is_one(R"({"model_type": "llama"})", ".textproto"));
  EXPECT_FALSE(is_one(R"({"layers": 32})"));
  for (const char* text : {"", "{", "[]", "3", R"(["model_type"])", R"("model_type")"}) {
    EXPECT_FALSE(is_one(text)) << text;
  }
}

TEST_F(HuggingFaceTest, NullMeansAbsent) {
  const ModelSpec model = model_of(R"({"model_type": "llama", "vocab_size": 1000,
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": null, "head_dim": null,
    "tie_word_embeddings": null})");
  EXPECT_EQ(model.attention.kv_heads, 8) << "as many as heads";
  EXPECT_EQ(model.attention.head_dim, 64);
  EXPECT_FALSE(model.embedding.tied);
}

TEST_F(HuggingFaceTest, HeadDimNeedNotBeHiddenOverHeads) {
  const ModelSpec model = model_of(R"({"model_type": "llama", "vocab_size": 1000,
    "hidden_size": 500, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "head_dim": 128})");
  EXPECT_EQ(model.attention.head_dim, 128);
}

TEST_F(HuggingFaceTest, ReadsGpt2) {
  const ModelSpec model = model_of(R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768,
    "n_head": 12, "n_layer": 12, "n_positions": 1024, "n_inner": null})");
  EXPECT_EQ(model.layers, 12);
  EXPECT_EQ(model.hidden, 768);
  EXPECT_EQ(model.mlp.width, 3072) << "4 x n_embd";
  EXPECT_EQ(model.attention.kv_heads, 12);
  EXPECT_EQ(model.attention.head_dim, 64);
  EXPECT_EQ(model.embedding.learned_positions, 1024);
  EXPECT_FALSE(model.mlp.gated);
  EXPECT_TRUE(model.embedding.tied);
  EXPECT_TRUE(model.attention.bias);
  EXPECT_TRUE(model.mlp.bias);
  EXPECT_EQ(model.norms.kind, NormKind::kLayer);
  // GPT-2 small has 124,439,808 parameters (the safetensors file of openai-community/gpt2).
  EXPECT_EQ(parameter_count(model), 124'439'808);
}

constexpr const char* kByHand =
    ". One that only renames a family is read with --as FAMILY; another can be described by hand "
    "(docs/adding-a-model.md): model { layers: .. hidden: .. intermediate: .. heads: .. "
    "vocabulary: .. mixer_pattern: a letter a layer, G for global attention, L for a window, S for "
    "a state and others; mlp_pattern: D for dense, E for experts }, with window, state { .. } or "
    "experts { .. } where a letter needs it";

TEST_F(HuggingFaceTest, AnotherFamilyNamesTheNearest) {
  const std::string must =
      "config.json: model_type: must be a family that is read (stepsim import "
      "families), is ";
  EXPECT_EQ(problems_with(R"({"model_type": "mamba3", "hidden_size": 4096})"),
            Lines{must + "\"mamba3\"; nearest: mamba, mamba2, mamba_ssm" + kByHand});
  EXPECT_EQ(problems_with(R"({"model_type": "xyz"})"), Lines{must + "\"xyz\"" + kByHand});
  EXPECT_EQ(problems_with(R"({"model_type": "rwkv7"})"),
            Lines{must + "\"rwkv7\"; rwkv7: its time mixing is not modelled" + kByHand});
}

TEST_F(HuggingFaceTest, AFamilyThatRenamesAnotherIsReadAsThat) {
  const std::string config = write("config.json", R"({"model_type": "copycat", "vocab_size": 1000,
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "copycat_constant": 3})");
  ExperimentSource source = from_flags(config, "dgx-h100-8", kPlan);
  source.overrides = {"model.as=llama"};
  const ModelSpec model = load_experiment(source).model;
  EXPECT_EQ(model.attention.head_dim, 64);
  EXPECT_EQ(model.note, "read as llama, is copycat");
  source.overrides = {"model.as=lama"};
  EXPECT_EQ(problems_of(source).size(), 1U);
}

TEST_F(HuggingFaceTest, AnotherFamilyThanItsOwnDropsNothing) {
  const std::string config = write("config.json", R"({"model_type": "copycat", "vocab_size": 1000,
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_experts": 16})");
  ExperimentSource source = from_flags(config, "dgx-h100-8", kPlan);
  source.overrides = {"model.as=llama"};
  EXPECT_EQ(problems_of(source),
            Lines{"config.json: num_experts: is 16, but a llama has no such thing here"});
}

TEST_F(HuggingFaceTest, APeriodIsNoneOfNothing) {
  for (const char* period : {"0", "\"x\"", "[]", "-3", "2305843009213693952"}) {
    const Lines lines = problems_with(std::string(R"({"model_type": "ernie4_5_moe",
      "vocab_size": 1000, "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
      "num_attention_heads": 8, "moe_num_experts": 8, "moe_k": 2, "moe_intermediate_size": 64,
      "moe_layer_interval": )") + period +
                                      "}");
    EXPECT_FALSE(lines.empty()) << period;
    EXPECT_FALSE(problems_with(std::string(R"({"model_type": "qwen3_moe", "vocab_size": 1000,
      "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
      "num_attention_heads": 8, "num_experts": 8, "num_experts_per_tok": 2,
      "moe_intermediate_size": 64, "decoder_sparse_step": )") +
                               period + "}")
                     .empty())
        << period;
  }
}

TEST_F(HuggingFaceTest, AFolderIsReadByItsConfig) {
  write("config.json", R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 512,
    "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8})");
  const std::string folder = std::filesystem::path(write("other.txt", "")).parent_path().string();
  EXPECT_EQ(load_experiment(from_flags(folder, "dgx-h100-8", kPlan)).model.layers, 2);
}

TEST_F(HuggingFaceTest, TheTextOfAModelWithPicturesCounts) {
  const ModelSpec model = model_of(R"({"model_type": "mistral3", "vision_config": {"layers": 3},
    "tie_word_embeddings": true,
    "text_config": {"model_type": "mistral", "vocab_size": 1000, "hidden_size": 512,
    "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8}})");
  EXPECT_EQ(model.layers, 2);
  EXPECT_TRUE(model.embedding.tied) << "a key outside the text's";
  EXPECT_EQ(model.note,
            "its vision part is not counted; num_key_value_heads, sliding_window are those of its "
            "class");
}

// A number of tokens a key for each layer, then for the module of prediction.
std::string deepseek_v4(const std::string& ratios) {
  return R"({"model_type": "deepseek_v4", "vocab_size": 1000, "hidden_size": 512, "head_dim": 64,
    "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 1, "q_lora_rank": 64,
    "o_lora_rank": 32, "o_groups": 4, "qk_rope_head_dim": 16, "index_n_heads": 4,
    "index_head_dim": 32, "index_topk": 16, "sliding_window": 32, "hc_mult": 4,
    "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
    "moe_intermediate_size": 128, "num_hash_layers": 1, "num_nextn_predict_layers": 1,)" +
         ratios + "}";
}

TEST_F(HuggingFaceTest, LayersOfDeepSeekV4AreThoseOfTheirRatios) {
  const ModelSpec model = model_of(deepseek_v4(R"("compress_ratios": [0, 4, 128, 0])"));
  EXPECT_EQ(model.mixer_pattern, "LCH");
  EXPECT_EQ(model.compressed.ratio, 4);
  EXPECT_EQ(model.compressed.heavy_ratio, 128);
  EXPECT_EQ(model.hyper, (HyperSpec{.streams = 4, .sinkhorn_iterations = 20}));
  EXPECT_EQ(model.prediction.modules, 1);
  EXPECT_EQ(model.prediction.block, "LE");
  EXPECT_EQ(model_of(deepseek_v4(R"("layer_types": ["sliding_attention",
    "compressed_sparse_attention", "heavily_compressed_attention"], "compress_rates":
    {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128})"))
                .mixer_pattern,
            "LCH");
}

// The sizes of Qwen3.5-27B's, whose file has 460,730,096 parameters of it.
TEST_F(HuggingFaceTest, ReadsAVisionPart) {
  const std::string text = R"("text_config": {"model_type": "llama", "vocab_size": 1000,
    "hidden_size": 5120, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 8}})";
  const std::string vision = R"({"model_type": "qwen3_5", "vision_config": {"depth": 27,
    "deepstack_visual_indexes": [], "hidden_size": 1152, "in_channels": 3,
    "intermediate_size": 4304, "model_type": "qwen3_5", "num_heads": 16,
    "num_position_embeddings": 2304, "out_hidden_size": 5120, "patch_size": 16,
    "spatial_merge_size": 2, "temporal_patch_size": 2}, )";
  const ModelSpec model = model_of(vision + text);
  EXPECT_EQ(vision_parameter_count(model), 460'730'096);
  EXPECT_EQ(model.note, "");
}

TEST_F(HuggingFaceTest, SaysTheTypeOfTheWeights) {
  const auto type = [&](const std::string& quantization) {
    return model_of(R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 512,
      "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
      "quantization_config": )" +
                    quantization + "}")
        .weight_type;
  };
  EXPECT_EQ(type("null"), std::nullopt);
  EXPECT_EQ(type(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})"),
            DataType::kFp8Block);
  EXPECT_EQ(type(R"({"quant_method": "fp8"})"), DataType::kFp8);
  EXPECT_EQ(type(R"({"quant_method": "mxfp4"})"), DataType::kMxfp4);
  EXPECT_EQ(type(R"({"quant_method": "awq", "bits": 4})"), DataType::kInt4);
  EXPECT_EQ(type(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})"), DataType::kNvfp4);
  EXPECT_EQ(type(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0":
      {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}})"),
            DataType::kInt4);
  EXPECT_EQ(problems_with(R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 512,
      "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
      "quantization_config": {"quant_method": "magic"}})"),
            Lines{"config.json: quantization_config: quant_method: must be fp8, mxfp4, "
                  "compressed-tensors, modelopt, gptq, awq, auto-round, bitsandbytes or eetq; is "
                  "\"magic\""});
}

TEST_F(HuggingFaceTest, ReadsPatternsOfBranches) {
  const std::string sizes = R"("vocab_size": 1000, "hidden_size": 512, "intermediate_size": 1024,
    "num_attention_heads": 8, "num_key_value_heads": 2, "mamba_num_heads": 16,
    "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128)";
  const ModelSpec model = model_of(R"({"model_type": "nemotron_h", "num_hidden_layers": 4,
    "hybrid_override_pattern": "M-*-", "time_step_limit": [0.0, Infinity], )" +
                                   sizes + "}");
  EXPECT_EQ(model.mixer_pattern, "S-G-");
  EXPECT_EQ(model.mlp_pattern, "-D-D");
  EXPECT_FALSE(model.mlp.gated);
  EXPECT_EQ(problems_with(R"({"model_type": "nemotron_h", "num_hidden_layers": 3,
    "hybrid_override_pattern": "M-X", )" +
                          sizes + "}"),
            Lines{"config.json: hybrid_override_pattern: must be letters M, *, - and E; layer 2 is "
                  "X"});
  EXPECT_EQ(problems_with(R"({"model_type": "nemotron_h", "num_hidden_layers": 5,
    "hybrid_override_pattern": "M-*-", )" +
                          sizes + "}"),
            Lines{"config.json: hybrid_override_pattern: must have a letter for each of the 5 "
                  "layers, has 4"});
}

TEST_F(HuggingFaceTest, NamesALayerOfUnknownKind) {
  EXPECT_EQ(problems_with(R"({"model_type": "qwen3_next", "vocab_size": 1000, "hidden_size": 512,
    "intermediate_size": 1024, "num_hidden_layers": 3, "num_attention_heads": 8,
    "linear_num_value_heads": 8, "linear_num_key_heads": 8, "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "layer_types": ["linear_attention", "full_attention", "magic_attention"]})"),
            Lines{"config.json: layer_types: must hold linear_attention, full_attention only; "
                  "layer 2 is \"magic_attention\""});
}

TEST_F(HuggingFaceTest, AFieldIsReportedUnderItsKeyAlone) {
  EXPECT_EQ(problems_with(R"({"model_type": "mixtral", "hidden_size": 4096})"),
            (Lines{"config.json: num_hidden_layers: must be given: a whole number of at least 1",
                   "config.json: num_attention_heads: must be given: a whole number of at least 1",
                   "config.json: vocab_size: must be given: a whole number of at least 1",
                   "config.json: num_local_experts: must be given: a whole number of at least 1",
                   "config.json: num_experts_per_tok: must be given: a whole number of at least 1",
                   "config.json: intermediate_size: must be given: a whole number of at least 1"}));
}

// A key that would change the shape is refused, not ignored.
TEST_F(HuggingFaceTest, ShapesThatAFamilyDoesNotHaveAreRefused) {
  EXPECT_EQ(problems_with(R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 512,
    "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_local_experts": 8, "sliding_window": null, "kv_lora_rank": 512})"),
            (Lines{"config.json: num_local_experts: is 8, but a llama has no such thing here",
                   "config.json: kv_lora_rank: is 512, but a llama has no such thing here"}));
}

// Published counts: the safetensors files on huggingface.co.
TEST_F(HuggingFaceTest, ReadsMistral) {
  const ModelSpec model = model_of(R"({"model_type": "mistral", "vocab_size": 32000,
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": 4096})");
  EXPECT_EQ(model.attention.window, 4096);
  EXPECT_TRUE(kind_of(model, 0).mixer == Mixer::kLocal &&
              kind_of(model, 31).mixer == Mixer::kLocal);
  EXPECT_EQ(parameter_count(model), 7'241'732'096);
}

TEST_F(HuggingFaceTest, ReadsQwen2WithItsBiases) {
  const ModelSpec model = model_of(R"({"model_type": "qwen2", "vocab_size": 152064,
    "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "max_window_layers": 28,
    "sliding_window": 131072, "use_sliding_window": false, "tie_word_embeddings": false})");
  EXPECT_TRUE(model.attention.qkv_bias);
  EXPECT_FALSE(model.attention.bias);
  EXPECT_EQ(model.attention.window, 0);
  EXPECT_EQ(parameter_count(model), 7'615'616'512);
}

TEST_F(HuggingFaceTest, QwenHasItsWindowInTheLastLayers) {
  for (const std::string type : {"qwen2", "qwen3"}) {
    const ModelSpec model = model_of(R"({"model_type": ")" + type + R"(", "vocab_size": 1000,
      "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
      "num_attention_heads": 8, "max_window_layers": 3, "sliding_window": 64,
      "use_sliding_window": true})");
    EXPECT_EQ(model.attention.window, 64) << type;
    EXPECT_EQ(model.mixer_pattern, "GGGL") << type;
  }
}

TEST_F(HuggingFaceTest, ReadsQwen3) {
  const ModelSpec model = model_of(R"({"model_type": "qwen3", "vocab_size": 151936,
    "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "head_dim": 128,
    "num_attention_heads": 32, "num_key_value_heads": 8, "attention_bias": false,
    "tie_word_embeddings": false, "use_sliding_window": false, "max_window_layers": 36})");
  EXPECT_TRUE(model.attention.qk_norm);
  EXPECT_EQ(parameter_count(model), 8'190'735'360);
}

TEST_F(HuggingFaceTest, ReadsQwen3WithExperts) {
  const ModelSpec model = model_of(R"({"model_type": "qwen3_moe", "vocab_size": 151936,
    "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
    "num_local_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1,
    "mlp_only_layers": []})");
  EXPECT_EQ(model.attention.head_dim, 128) << "of every qwen3";
  EXPECT_EQ(model.experts.routed, 128) << "the newer spelling";
  EXPECT_EQ(model.mlp.width, 768) << "no layer has the other";
  EXPECT_EQ(parameter_count(model), 30'532'122'624);
}

TEST_F(HuggingFaceTest, Qwen3CanHaveDenseLayers) {
  const ModelSpec model = model_of(R"({"model_type": "qwen3_moe", "vocab_size": 1000,
    "hidden_size": 512, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_hidden_layers": 6, "num_attention_heads": 8, "num_experts": 8, "num_experts_per_tok": 2,
    "decoder_sparse_step": 2, "mlp_only_layers": [0, 1]})");
  EXPECT_EQ(model.mlp.width, 6144);
  std::string mlps;
  for (std::int64_t layer = 0; layer < 6; ++layer) {
    mlps += kind_of(model, layer).mlp == MlpKind::kExperts ? 'E' : 'D';
  }
  EXPECT_EQ(mlps, "DDDEDE");
}

// decoder_sparse_step counts from the first layer; mlp_only_layers takes any of them out.
TEST_F(HuggingFaceTest, AnyLayersOfQwen3CanBeDense) {
  const ModelSpec model = model_of(R"({"model_type": "qwen3_moe", "vocab_size": 1000,
    "hidden_size": 512, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_hidden_layers": 8, "num_attention_heads": 8, "num_experts": 8, "num_experts_per_tok": 2,
    "decoder_sparse_step": 2, "mlp_only_layers": [0, 5]})");
  EXPECT_EQ(model.mlp_pattern, "DEDEDDDE");
}

TEST_F(HuggingFaceTest, ListsNameTheEntryThatIsOfAnotherKind) {
  const Lines lines = problems_with(R"({"model_type": "qwen3_moe", "vocab_size": 1000,
    "hidden_size": 512, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_experts": 8, "num_experts_per_tok": 2,
    "mlp_only_layers": [0, 1.5]})");
  EXPECT_EQ(lines,
            Lines{"config.json: mlp_only_layers: must be a list of whole numbers; entry 1 is 1.5"});
}

// Qwen1.5-MoE-A2.7B.
TEST_F(HuggingFaceTest, ReadsQwen2WithExperts) {
  const ModelSpec model = model_of(R"({"model_type": "qwen2_moe", "vocab_size": 151936,
    "hidden_size": 2048, "intermediate_size": 5632, "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
    "num_key_value_heads": 16, "num_experts": 60, "num_experts_per_tok": 4,
    "decoder_sparse_step": 1, "max_window_layers": 21, "use_sliding_window": false})");
  EXPECT_TRUE(model.experts.shared_gate);
  EXPECT_EQ(parameter_count(model), 14'315'784'192);
}

// Phi-3-mini-4k.
TEST_F(HuggingFaceTest, ReadsPhi3) {
  const ModelSpec model = model_of(R"({"model_type": "phi3", "vocab_size": 32064,
    "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "sliding_window": 2047})");
  EXPECT_EQ(model.attention.window, 2047);
  EXPECT_EQ(parameter_count(model), 3'821'079'552);
}

TEST_F(HuggingFaceTest, ReadsStarcoder2) {
  const ModelSpec model = model_of(R"({"model_type": "starcoder2", "vocab_size": 49152,
    "hidden_size": 4608, "intermediate_size": 18432, "num_hidden_layers": 32,
    "num_attention_heads": 36, "num_key_value_heads": 4, "use_bias": true,
    "sliding_window": 4096})");
  EXPECT_FALSE(model.mlp.gated);
  EXPECT_EQ(parameter_count(model), 7'173'923'840);
}

// DeepSeek-V2-Lite: queries without a latent vector. head_dim of such files is the rotary part.
TEST_F(HuggingFaceTest, ReadsDeepSeek) {
  const ModelSpec model = model_of(R"({"model_type": "deepseek_v2", "vocab_size": 102400,
    "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
    "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
    "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "head_dim": 64, "n_routed_experts": 64, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1})");
  EXPECT_EQ(model.attention.head_dim, 192);
  EXPECT_EQ(model.latent.q_rank, 0);
  EXPECT_EQ(model.experts.shared_intermediate, 2816);
  EXPECT_EQ(model.experts.first_dense, 1);
  EXPECT_EQ(parameter_count(model), 15'706'484'224);
}

TEST_F(HuggingFaceTest, ReadsGemma2And3) {
  const ModelSpec two = model_of(R"({"model_type": "gemma2", "vocab_size": 256000,
    "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
    "sliding_window": 4096})");
  EXPECT_EQ(two.mixer_pattern, "LG");
  EXPECT_TRUE(two.norms.post && two.embedding.tied);
  EXPECT_EQ(parameter_count(two), 9'241'705'984);
  // The text part of gemma-3-27b, as its file gives it.
  const ModelSpec three = model_of(R"({"model_type": "gemma3", "vision_config": {},
    "text_config": {"model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504,
    "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
    "sliding_window": 1024}})");
  EXPECT_EQ(three.mixer_pattern, "LLLLLG");
  EXPECT_EQ(three.embedding.vocabulary, 262'208);
  EXPECT_TRUE(three.attention.qk_norm);
  EXPECT_EQ(parameter_count(three), 27'009'346'304);
}

TEST_F(HuggingFaceTest, ReadsGptOss) {
  const ModelSpec model = model_of(R"({"model_type": "gpt_oss", "vocab_size": 201088,
    "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 4, "head_dim": 64,
    "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 32,
    "experts_per_token": 4, "num_experts_per_tok": 4, "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention", "full_attention", "full_attention"]})");
  EXPECT_EQ(model.mixer_pattern, "LGGG");
  EXPECT_TRUE(model.attention.sinks && model.attention.bias && model.mlp.bias);
  EXPECT_TRUE(model.experts.router_bias);
}

TEST_F(HuggingFaceTest, LayerTypesMustBeThoseOfTheLayers) {
  const Lines lines = problems_with(R"({"model_type": "gemma2", "vocab_size": 1000,
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64,
    "layer_types": ["sliding_attention", "full_attention"]})");
  EXPECT_EQ(lines, Lines{"config.json: layer_types: must have one entry for each of the 3 layers, "
                         "has 2"});
}

TEST_F(HuggingFaceTest, ReadsBloom) {
  const ModelSpec model = model_of(R"({"model_type": "bloom", "vocab_size": 250880,
    "hidden_size": 1024, "n_layer": 24, "n_head": 16, "hidden_dropout": 0.0})");
  EXPECT_FALSE(model.attention.rotary);
  EXPECT_TRUE(model.norms.embedding);
  EXPECT_EQ(parameter_count(model), 559'214'592);
}

TEST_F(HuggingFaceTest, EveryWrongKeyIsReportedOnce) {
  const Lines lines = problems_with(R"({"model_type": "llama", "vocab_size": 1000,
    "hidden_size": -512, "intermediate_size": "big", "num_attention_heads": 8,
    "num_hidden_layers": 2.5, "tie_word_embeddings": "no"})");
  const std::string must = "must be a whole number of 1 to ";
  EXPECT_EQ(lines, (Lines{"config.json: num_hidden_layers: " + must + "1024, is 2.5",
                          "config.json: hidden_size: " + must + "2097152, is -512",
                          "config.json: tie_word_embeddings: must be true or false, is \"no\"",
                          "config.json: intermediate_size: " + must + "2097152, is \"big\""}));
}

TEST_F(HuggingFaceTest, MissingSizesAreNamed) {
  const Lines lines = problems_with(R"({"model_type": "gpt2", "n_embd": 768, "n_head": 7})");
  EXPECT_EQ(lines,
            (Lines{"config.json: n_layer: must be given: a whole number of at least 1",
                   "config.json: n_head: must divide the hidden size (768) where head_dim "
                   "is not given, is 7",
                   "config.json: vocab_size: must be given: a whole number of at least 1",
                   "config.json: n_positions: must be given: a whole number of at least 1"}));
}

TEST_F(HuggingFaceTest, AnExperimentNamesTheFileBesideIt) {
  write("tiny.json", R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 512,
    "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8})");
  const std::string file = write("experiment.textproto", R"(
    model { huggingface: "tiny.json" layers: 6 } cluster { catalog: "dgx-h100-8" }
    plan { dp: 8 global_batch: 8 sequence: 128 })");
  const ModelSpec model = load_experiment(from(file)).model;
  EXPECT_EQ(model.name, "tiny");
  EXPECT_EQ(model.hidden, 512);
  EXPECT_EQ(model.layers, 6) << "fields of the experiment win";
}

// The text of a model that also hears, sees and speaks lies two levels deep.
TEST_F(HuggingFaceTest, ReadsTheThinkerOfAnOmniModel) {
  const ModelSpec model = model_of(R"({"model_type": "qwen3_omni_moe",
    "talker_config": {"accept_hidden_layer": 18}, "thinker_config": {
    "audio_config": {"d_model": 1280}, "vision_config": {"depth": 27}, "text_config": {
    "model_type": "qwen3_omni_moe_text", "vocab_size": 151936, "hidden_size": 2048,
    "moe_intermediate_size": 768, "intermediate_size": 768, "num_hidden_layers": 48,
    "num_attention_heads": 32, "num_key_value_heads": 4, "num_experts": 128,
    "num_experts_per_tok": 8, "shared_expert_intermediate_size": 0}}})");
  EXPECT_EQ(parameter_count(model), 30'532'122'624) << "as Qwen3-30B-A3B";
  EXPECT_EQ(model.note, "its speech and vision and audio part is not counted");
}

// Positions limit a sequence; rows of token types and of padding don't add to them.
TEST_F(HuggingFaceTest, PositionsAreThoseThatTokensTake) {
  const auto config = [](const std::string& type, const std::string& more) {
    return R"({"model_type": ")" + type + R"(", "vocab_size": 1000, "hidden_size": 512,
      "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8, )" +
           more + "}";
  };
  const ModelSpec bert = model_of(config("bert", R"("max_position_embeddings": 512)"));
  EXPECT_EQ(bert.embedding.learned_positions, 512);
  EXPECT_EQ(bert.embedding.extra_rows, 2);
  const ModelSpec roberta =
      model_of(config("roberta", R"("max_position_embeddings": 514, "type_vocab_size": 1)"));
  EXPECT_EQ(roberta.embedding.learned_positions, 512);
  EXPECT_EQ(roberta.embedding.extra_rows, 3);
  const std::string file =
      write("config.json", config("bert", R"("max_position_embeddings": 512)"));
  EXPECT_EQ(problems_of(from_flags(file, "dgx-h100-8", "dp=8,global-batch=8,sequence=514")).size(),
            1U);
}

TEST_F(HuggingFaceTest, TheBiasOfAConvolutionIsRead) {
  const auto parameters = [&](const char* bias) {
    return parameter_count(model_of(R"({"model_type": "mamba2", "vocab_size": 1000,
      "hidden_size": 512, "num_hidden_layers": 4, "num_heads": 16, "head_dim": 64, "n_groups": 1,
      "state_size": 128, "use_conv_bias": )" +
                                    std::string(bias) + "}"));
  };
  EXPECT_EQ(parameters("true") - parameters("false"), 4 * (1024 + 2 * 128));
}

// Layers of qwen3_next that have no experts.
TEST_F(HuggingFaceTest, Qwen3NextCanHaveDenseLayers) {
  const ModelSpec model = model_of(R"({"model_type": "qwen3_next", "vocab_size": 1000,
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 8, "linear_num_value_heads": 8, "linear_num_key_heads": 8,
    "linear_key_head_dim": 64, "linear_value_head_dim": 64, "num_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 64,
    "mlp_only_layers": [1]})");
  EXPECT_EQ(model.mlp_pattern, "EDEE");
  EXPECT_EQ(model.mlp.width, 1024);
}

// Nemotron Super: layers differ in the width of their MLP; a layer without anything is none.
TEST_F(HuggingFaceTest, LayersMayDifferInWidth) {
  const auto block = [](const char* attention, const char* mlp) {
    return std::string(R"({"attention": {)") + attention + R"(}, "ffn": {)" + mlp + "}}";
  };
  const std::string group = R"("n_heads_in_group": 4)";
  const ModelSpec model = model_of(
      R"({"model_type": "nemotron-nas", "vocab_size": 1000, "hidden_size": 512,
      "num_attention_heads": 8, "num_hidden_layers": 3, "block_configs": [)" +
      block(group.c_str(), R"("ffn_mult": 3.0)") + ", " +
      block(R"("no_op": true)", R"("ffn_mult": 1.5)") + ", " +
      block(R"("no_op": true)", R"("no_op": true)") + "]}");
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.mixer_pattern, "G-");
  EXPECT_EQ(model.mlp.widths, (std::vector<std::int64_t>{1024, 512}));
  EXPECT_EQ(model.mlp.width, 1024);
  EXPECT_EQ(model.attention.kv_heads, 2);
  const std::int64_t attention = 512 * (512 + 2 * 128) + 512 * 512 + 512;
  const std::int64_t mlps = 3 * 512 * (1024 + 512) + 2 * 512;
  EXPECT_EQ(parameter_count(model), attention + mlps + 2 * 1000 * 512 + 512);
}

}  // namespace
}  // namespace stepsim
