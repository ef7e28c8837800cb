#include "workload/mlp_stack.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

ModelSpec stack() {
  return {.name = "stack",
          .kind = ModelKind::kMlpStack,
          .layers = 3,
          .hidden = 64,
          .mlp = {.width = 256}};
}

double flops(const std::vector<Kernel>& kernels) {
  return std::accumulate(kernels.begin(), kernels.end(), 0.0, [](double sum, const Kernel& kernel) {
    return sum + kernel.flops.value();
  });
}

// 4 tokens D F forward; the same for the input gradients and for the weight gradients (Scaling
// Book, "How to parallelize a transformer for training").
TEST(MlpStackTest, ALayerIsTwoMatmulsForwardAndFourBackward) {
  const ModelLayers layers = build_layers(stack(), {.sequences = 2, .sequence_length = 5});
  EXPECT_TRUE(layers.embedding.ops.empty());
  EXPECT_TRUE(layers.head.ops.empty());
  double forward = 0;
  double input = 0;
  double weight = 0;
  for (const LayerOp& op : layers.block(0).ops) {
    forward += flops(op.forward);
    input += flops(op.input_gradient);
    weight += flops(op.weight_gradient);
  }
  EXPECT_EQ(forward, 4.0 * 10 * 64 * 256);
  EXPECT_EQ(input, forward);
  EXPECT_EQ(weight, forward);
  EXPECT_EQ(layers.block(0).parameters(), 2 * 64 * 256);
  EXPECT_EQ(layers.block(0).saved().value(), 10 * (64 + 256) * 2);
  EXPECT_EQ(layers.boundary.value(), 10 * 64 * 2);
}

TEST(MlpStackTest, ATensorGroupDividesWidthAndTokens) {
  const ModelLayers layers = build_layers(
      stack(), {.sequences = 1, .sequence_length = 16, .tensor = 4, .sequence_parallel = true});
  EXPECT_EQ(layers.block(0).parameters(), 2 * 64 * 256 / 4);
  EXPECT_EQ(layers.block(0).saved().value(), (16 / 4 * 64 + 16 * 256 / 4) * 2);
  EXPECT_EQ(layers.boundary.value(), 16 * 64 * 2);
}

// The tokens of the group come together before the first matmul, and again before its weight
// gradient. Without sequence parallelism every rank has them all.
TEST(MlpStackTest, DividedTokensAreGatheredBeforeTheFirstMatmul) {
  for (const bool divided : {true, false}) {
    const Shard shard{.sequence_length = 16, .tensor = 4, .sequence_parallel = divided};
    const ModelLayers layers = build_layers(stack(), shard);
    for (const LayerOp& op : layers.block(0).ops) {
      EXPECT_EQ(op.tensor.regathers_input, divided && op.name == "up_projection") << op.name.text();
    }
    const LayerOp& up = layers.block(0).ops[1];
    EXPECT_EQ(up.workspace.forward.value(), divided ? 16 * 64 * 2 : 0);
  }
}

// 6 x parameters x tokens, with nothing for attention.
TEST(MlpStackTest, ModelFlopsAreSixAParameterAndToken) {
  const std::int64_t parameters = 3 * 2 * 64 * 256;
  EXPECT_EQ(parameter_count(stack()), parameters);
  EXPECT_EQ(matmul_parameter_count(stack()), parameters);
  for (const AttentionFlops convention : {AttentionFlops::kCausal, AttentionFlops::kFull}) {
    EXPECT_EQ(model_flops(stack(), 4, 8, convention), 6.0 * 32 * static_cast<double>(parameters));
  }
}

TEST(MlpStackTest, WhatItDoesNotHaveIsRefused) {
  ModelSpec model = stack();
  model.attention.heads = 8;
  model.embedding.vocabulary = 1000;
  model.hidden = 0;
  const std::vector<Problem> problems = check(model);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].field, "hidden");
  EXPECT_EQ(problems[1].field, "heads");
  EXPECT_EQ(problems[2].field, "vocabulary");
  EXPECT_TRUE(check(stack()).empty());
}

}  // namespace
}  // namespace stepsim
