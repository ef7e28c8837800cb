#include "proto/hugging_face.h"

#include <gtest/gtest.h>

#include "tests/proto/experiment_case.h"
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
  EXPECT_EQ(model.intermediate, 14336);
  EXPECT_EQ(model.heads, 32);
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.head_dim, 128) << "hidden_size / num_attention_heads";
  EXPECT_EQ(model.vocabulary, 128256);
  EXPECT_EQ(model.learned_positions, 0);
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_TRUE(model.attention_bias);
  EXPECT_FALSE(model.mlp_bias);
  EXPECT_EQ(model.norm, NormKind::kRms);
}

TEST_F(HuggingFaceTest, NullMeansAbsent) {
  const ModelSpec model = model_of(R"({"model_type": "llama", "vocab_size": 1000,
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": null, "head_dim": null,
    "tie_word_embeddings": null})");
  EXPECT_EQ(model.kv_heads, 8) << "as many as heads";
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_FALSE(model.tied_embeddings);
}

TEST_F(HuggingFaceTest, HeadDimNeedNotBeHiddenOverHeads) {
  const ModelSpec model = model_of(R"({"model_type": "llama", "vocab_size": 1000,
    "hidden_size": 500, "intermediate_size": 1024, "num_hidden_layers": 2,
    "num_attention_heads": 8, "head_dim": 128})");
  EXPECT_EQ(model.head_dim, 128);
}

TEST_F(HuggingFaceTest, ReadsGpt2) {
  const ModelSpec model = model_of(R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768,
    "n_head": 12, "n_layer": 12, "n_positions": 1024, "n_inner": null})");
  EXPECT_EQ(model.layers, 12);
  EXPECT_EQ(model.hidden, 768);
  EXPECT_EQ(model.intermediate, 3072) << "4 x n_embd";
  EXPECT_EQ(model.kv_heads, 12);
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(model.learned_positions, 1024);
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_TRUE(model.attention_bias);
  EXPECT_TRUE(model.mlp_bias);
  EXPECT_EQ(model.norm, NormKind::kLayer);
  // GPT-2 small has 124,439,808 parameters (the safetensors file of openai-community/gpt2).
  EXPECT_EQ(parameter_count(model), 124'439'808);
}

TEST_F(HuggingFaceTest, AnotherFamilySaysWhichAreRead) {
  EXPECT_EQ(problems_with(R"({"model_type": "mixtral", "hidden_size": 4096})"),
            Lines{"config.json: model_type: must be \"llama\" or \"gpt2\", is \"mixtral\""});
}

TEST_F(HuggingFaceTest, EveryWrongKeyIsReportedOnce) {
  const Lines lines = problems_with(R"({"model_type": "llama", "vocab_size": 1000,
    "hidden_size": -512, "intermediate_size": "big", "num_attention_heads": 8,
    "num_hidden_layers": 2.5, "tie_word_embeddings": "no"})");
  EXPECT_EQ(lines, (Lines{"config.json: num_hidden_layers: must be a whole number of at least 1, "
                          "is 2.5",
                          "config.json: hidden_size: must be a whole number of at least 1, is -512",
                          "config.json: intermediate_size: must be a whole number of at least 1, "
                          "is \"big\"",
                          "config.json: tie_word_embeddings: must be true or false, is \"no\""}));
}

TEST_F(HuggingFaceTest, MissingSizesAreNamed) {
  const Lines lines = problems_with(R"({"model_type": "gpt2", "n_embd": 768, "n_head": 7})");
  EXPECT_EQ(lines, (Lines{"config.json: n_layer: must be given: a whole number of at least 1",
                          "config.json: vocab_size: must be given: a whole number of at least 1",
                          "config.json: n_positions: must be given: a whole number of at least 1",
                          "config.json: n_head: must divide the hidden size (768) where head_dim "
                          "is not given, is 7"}));
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

}  // namespace
}  // namespace stepsim
