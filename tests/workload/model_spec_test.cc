#include "workload/model/model_spec.h"

#include <gtest/gtest.h>

#include "tests/support/published_models.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

TEST(ModelSpecTest, CountsTheParametersOfPublishedLlamas) {
  // The sizes of the checkpoints on Hugging Face (number of elements in their safetensors).
  EXPECT_EQ(parameter_count(llama3_8b()), 8'030'261'248);
  EXPECT_EQ(parameter_count(llama3_70b()), 70'553'706'496);
  EXPECT_EQ(parameter_count(llama3_405b()), 405'853'388'800);
  EXPECT_EQ(parameter_count(llama2_13b()), 13'015'864'320);
}

TEST(ModelSpecTest, CountsTheParametersOfGpt3) {
  // Narayanan et al. (arXiv 2104.04473), equation 2: 12 L h^2 (1 + 13 / (12 h) + (V + s) / (12 L
  // h))
  //   12 L h^2   12 x 96 x 12288^2        173,946,175,488
  //   13 L h     norms and biases              15,335,424
  //   (V + s) h  (50257 + 2048) x 12288       642,723,840
  // and the final layer norm, 2 h = 24,576, which the equation leaves out: published as "175B".
  EXPECT_EQ(parameter_count(gpt3_175b()), 173'946'175'488 + 15'335'424 + 642'723'840 + 24'576);
}

TEST(ModelSpecTest, UntyingAddsOneTable) {
  ModelSpec model = gpt3_175b();
  model.embedding.tied = false;
  EXPECT_EQ(parameter_count(model) - parameter_count(gpt3_175b()), 50257 * 12288);
  EXPECT_EQ(matmul_parameter_count(model), matmul_parameter_count(gpt3_175b()));
}

TEST(ModelSpecTest, MatmulParametersLeaveOutLookupNormsAndBiases) {
  // 70B: all but one table (128256 x 8192) and 2 x 80 + 1 norms of 8192.
  EXPECT_EQ(matmul_parameter_count(llama3_70b()),
            70'553'706'496 - std::int64_t{128256} * 8192 - 161 * 8192);
  // GPT-3: 12 L h^2 and the tied table as unembedding.
  EXPECT_EQ(matmul_parameter_count(gpt3_175b()), 173'946'175'488 + 50257 * 12288);
}

TEST(ModelSpecTest, ModelFlopsOfLlama3AtEightThousandTokens) {
  // 6 x 69,501,714,432 = 417.010 GFLOP a token in matmuls. Attention: 3 x 80 layers x 2 x 8192 / 2
  // pairs a token x 64 heads x 2 x 128 = 32.212 GFLOP causal, twice that in full.
  const double causal = model_flops(llama3_70b(), 1, 8192, AttentionFlops::kCausal) / 8192;
  const double full = model_flops(llama3_70b(), 1, 8192, AttentionFlops::kFull) / 8192;
  EXPECT_DOUBLE_EQ(causal, 6.0 * 69'501'714'432 + 3.0 * 80 * 2 * 4096 * 64 * 256);
  EXPECT_NEAR(causal, 449.2e9, 0.05e9);
  EXPECT_NEAR(full, 481.4e9, 0.05e9);
}

TEST(ModelSpecTest, ModelFlopsOfGpt3MatchMegatronWithoutRecompute) {
  // Narayanan et al., equation 3 is 96 B s L h^2 (1 + s / (6 h) + V / (16 L h)) with the forward
  // pass run twice, full attention. Without the second forward pass, which runs blocks only:
  // 72 B s L h^2 (1 + s / (6 h)) + 6 B s h V.
  const double s = 2048, layers = 96, h = 12288, vocabulary = 50257, sequences = 3;
  const double expected =
      72 * sequences * s * layers * h * h * (1 + s / (6 * h)) + 6 * sequences * s * h * vocabulary;
  EXPECT_NEAR(model_flops(gpt3_175b(), 3, 2048, AttentionFlops::kFull) / expected, 1, 1e-12);
}

TEST(ModelSpecTest, ModelFlopsAreProportionalToSequences) {
  EXPECT_DOUBLE_EQ(model_flops(llama3_8b(), 6, 4096, AttentionFlops::kCausal),
                   6 * model_flops(llama3_8b(), 1, 4096, AttentionFlops::kCausal));
}

TEST(ModelSpecTest, AcceptsPublishedModels) {
  for (const ModelSpec& model :
       {llama3_8b(), llama3_70b(), llama3_405b(), llama2_13b(), gpt3_175b()}) {
    EXPECT_TRUE(check(model).empty()) << model.name;
  }
}

TEST(ModelSpecTest, ReportsEveryProblemAtOnce) {
  ModelSpec model = llama3_8b();
  model.layers = 0;
  model.attention.kv_heads = 5;
  model.embedding.learned_positions = -1;
  const std::vector<Problem> expected{
      {"layers", "must be at least 1, is 0"},
      {"learned_positions", "must be at least 0, is -1"},
      {"kv_heads", "must divide heads (32), is 5"},
  };
  EXPECT_EQ(check(model), expected);
}

TEST(ModelSpecTest, ExpertsAndWindowsAreCheckedToo) {
  ModelSpec model = llama3_8b();
  model.mixer_pattern = "LYG";
  model.experts.per_token = 2;
  EXPECT_EQ(
      check(model),
      (std::vector<Problem>{
          {"mixer_pattern",
           "must be letters G (global attention), L (local), S (a state), B (both), I (sparse), C "
           "(compressed and chosen), H (compressed), N (not causal), X (with cross attention), Z "
           "(shared weights, then a state) or - (nothing), g and l (with the keys of an earlier "
           "layer), i (with its choice), one a layer; letter 2 of \"LYG\" is Y"},
          {"mixer_pattern", "has local layers, but there is no window: window must be at least 1"},
          {"experts.routed", "must be at least 1 where other fields of experts are given, is 0"},
      }));
  model = mixtral_8x7b();
  model.experts.per_token = 9;
  model.experts.load = {1, 2};
  EXPECT_EQ(check(model),
            (std::vector<Problem>{
                {"experts.per_token", "must be at most experts.routed (8), is 9"},
                {"experts.load", "must have one number for each of the 8 routed experts, has 2"},
            }));
}

// Top-2 of 8: an expert that gets half of all copies gets every token.
TEST(ModelSpecTest, NoExpertGetsATokenTwice) {
  ModelSpec model = mixtral_8x7b();
  model.experts.load = {6, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(check(model), std::vector<Problem>{});
  model.experts.load = {9, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(check(model),
            (std::vector<Problem>{
                {"experts.load",
                 "must be less than 1 / experts.per_token (2) of the sum, as a token goes to an "
                 "expert once; is 9.000000 of 16.000000 for expert 0"}}));
  model.experts.per_token = 8;
  EXPECT_EQ(check(model), std::vector<Problem>{}) << "every token goes to all";
}

TEST(ModelSpecTest, LayersTakeTurns) {
  ModelSpec model = mixtral_8x7b();
  model.attention.window = 1024;
  model.mixer_pattern = "LLG";
  model.experts.first_dense = 1;
  model.experts.every = 2;
  std::string attention, mlp;
  for (std::int64_t layer = 0; layer < 7; ++layer) {
    attention += kind_of(model, layer).mixer == Mixer::kLocal ? 'L' : 'G';
    mlp += kind_of(model, layer).mlp == MlpKind::kExperts ? 'E' : 'D';
  }
  EXPECT_EQ(attention, "LLGLLGL");
  EXPECT_EQ(mlp, "DDEDEDE");
}

TEST(ModelSpecTest, WindowsCountTheirOwnPairs) {
  // Windows of 1,024 in half of the layers at 8,192 tokens: 8192 x 1024 - 1024^2 / 2 pairs there.
  ModelSpec model = llama3_8b();
  model.attention.window = 1024;
  model.mixer_pattern = "LG";
  const double matmuls = 6.0 * 8192 * static_cast<double>(matmul_parameter_count(model));
  const double pair = 3.0 * 2 * 32 * 256;  // FLOPs of one pair, forward and backward, all heads
  const double local = 8192.0 * 1024 - 1024.0 * 1024 / 2;
  EXPECT_DOUBLE_EQ(model_flops(model, 1, 8192, AttentionFlops::kCausal),
                   matmuls + 16 * pair * (local + 8192.0 * 8192 / 2));
  EXPECT_DOUBLE_EQ(model_flops(model, 1, 8192, AttentionFlops::kFull),
                   matmuls + 16 * pair * (local + 8192.0 * 8192));
}

TEST(ModelSpecTest, AnEmptyModelMissesEveryCountButPositions) {
  EXPECT_EQ(check(ModelSpec{}).size(), 7U);
}

}  // namespace
}  // namespace stepsim
