// Layers with a state: parameters and FLOPs counted by hand from their papers.

#include "workload/mixers/state_mixer.h"

#include <gtest/gtest.h>

#include "tests/support/layer_ops.h"
#include "tests/support/published_models.h"
#include "workload/layers.h"
#include "workload/mixers/chunked_scan.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// mamba2-2.7b (state-spaces/mamba2-2.7b): 64 layers of width 2,560, inner width 5,120 in 80 heads
// of 64, state 128, 1 group, 4 taps, no MLP.
ModelSpec mamba2() {
  ModelSpec model{
      .name = "mamba2-2.7b", .layers = 64, .hidden = 2560, .embedding = {.vocabulary = 50288}};
  model.embedding.tied = true;
  model.mixer_pattern = "S";
  model.mlp_pattern = "-";
  model.state = {.kind = StateKind::kMamba2,
                 .heads = 80,
                 .groups = 1,
                 .key_dim = 128,
                 .value_dim = 64,
                 .convolution = 4,
                 .chunk = 256};
  return model;
}

// The linear layers of Qwen3-Next 80B-A3B: width 2,048, 32 heads of 128 values, 16 of 128 keys.
ModelSpec gated_delta() {
  ModelSpec model{.name = "delta",
                  .layers = 4,
                  .hidden = 2048,
                  .attention = {.heads = 16, .kv_heads = 2, .head_dim = 256},
                  .mlp = {.width = 5120},
                  .embedding = {.vocabulary = 151936}};
  model.mixer_pattern = "SSSG";
  model.attention.gate = AttentionGate::kValue;
  model.state = {.kind = StateKind::kGatedDelta,
                 .heads = 32,
                 .groups = 16,
                 .key_dim = 128,
                 .value_dim = 128,
                 .convolution = 4};
  return model;
}

double flops_of(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.kind == KernelKind::kMatmul) sum += kernel.flops.value();
  }
  return sum;
}

TEST(StateMixerTest, CountsTheParametersOfMamba2) {
  const ModelSpec model = mamba2();
  ASSERT_EQ(check(model), std::vector<Problem>{});
  const std::int64_t inner = 5120, filtered = inner + 2 * 128;
  const std::int64_t layer = 2560 * (2 * inner + 2 * 128 + 80)  // z, x, B, C, steps
                             + filtered * (4 + 1)               // taps and bias
                             + 3 * 80                           // A, D, bias of the steps
                             + inner                            // gated norm
                             + inner * 2560                     // out
                             + 2560;                            // norm
  EXPECT_EQ(parameter_count(model), 64 * layer + 50288 * 2560 + 2560);
  EXPECT_EQ(parameter_count(model), 2'702'599'680) << "as published";
}

TEST(StateMixerTest, CountsTheParametersOfAGatedDeltaLayer) {
  const ModelSpec model = gated_delta();
  ASSERT_EQ(check(model), std::vector<Problem>{});
  const ModelLayers layers = build_layers(model, {.sequence_length = 1});
  const Layer& linear = layers.block(0);
  const std::int64_t keys = 16 * 128, values = 32 * 128;
  EXPECT_EQ(op_named(linear, "state_projection").parameters.own,
            2048 * (2 * keys + 2 * values + 2 * 32));
  EXPECT_EQ(op_named(linear, "convolution").parameters.own, 4 * (2 * keys + values));
  EXPECT_EQ(op_named(linear, "scan").parameters.own, 2 * 32);
  EXPECT_EQ(op_named(linear, "state_norm").parameters.own, 128);
  EXPECT_EQ(op_named(linear, "state_out_projection").parameters.own, values * 2048);
  // Queries with a gate for each value, two key-value heads.
  EXPECT_EQ(op_named(layers.block(3), "qkv_projection").parameters.own,
            2048 * (2 * 16 * 256 + 2 * 2 * 256));
}

// 7 FLOPs a value of the state and token for mamba2, 8 for delta: linear in the tokens.
TEST(StateMixerTest, ModelFlopsCountTheRecurrence) {
  for (const double tokens : {4096.0, 32768.0, 1048576.0}) {
    const auto length = static_cast<std::int64_t>(tokens);
    const ModelSpec mamba = mamba2();
    EXPECT_DOUBLE_EQ(model_flops(mamba, 1, length, AttentionFlops::kCausal),
                     6 * tokens * static_cast<double>(matmul_parameter_count(mamba)) +
                         3 * 64 * 7 * tokens * 5120 * 128);
    const ModelSpec delta = gated_delta();
    EXPECT_DOUBLE_EQ(
        model_flops(delta, 1, length, AttentionFlops::kCausal),
        6 * tokens * static_cast<double>(matmul_parameter_count(delta)) +
            3 * (3 * 8 * tokens * 32 * 128 * 128 + 2 * tokens * tokens / 2 * 16 * (256 + 256)));
  }
}

// 2 C (N G / H + P) + 4 N P FLOPs a token and head in chunks of C.
TEST(ChunkedScanTest, Mamba2RunsItsFourMatmuls) {
  const ScanShape shape{.kind = StateKind::kMamba2,
                        .sequences = 2,
                        .tokens = 4096,
                        .heads = 80,
                        .groups = 1,
                        .key_dim = 128,
                        .value_dim = 64,
                        .chunk = 256};
  const ScanKernels kernels = chunked_scan(DataType::kBf16, shape);
  const double tokens = 2 * 4096;
  EXPECT_DOUBLE_EQ(flops_of(kernels.forward),
                   tokens * (2 * 256 * (128 + 80 * 64) + 80 * 4 * 128 * 64));
  // States and scores again, and two matmuls for each.
  EXPECT_DOUBLE_EQ(flops_of(kernels.backward),
                   2 * flops_of(kernels.forward) + tokens * (2 * 256 * 128 + 80 * 2 * 128 * 64));
}

// 2 C (3 N + 2 P) + 6 N P FLOPs a token and head, besides the triangular inverse.
TEST(ChunkedScanTest, TheDeltaRulePassesStatesOneChunkAfterTheOther) {
  const ScanShape shape{.kind = StateKind::kGatedDelta,
                        .sequences = 1,
                        .tokens = 8192,
                        .heads = 4,
                        .groups = 4,
                        .key_dim = 128,
                        .value_dim = 128,
                        .chunk = 64};
  const ScanKernels kernels = chunked_scan(DataType::kBf16, shape);
  EXPECT_DOUBLE_EQ(flops_of(kernels.forward), 4.0 * 8192 * (2 * 64 * 5 * 128 + 6 * 128 * 128));
  int sequential = 0;
  for (const Kernel& kernel : kernels.forward) {
    if (!kernel.sequential) continue;
    ++sequential;
    EXPECT_EQ(kernel.batch, 4 * 2) << "two blocks of 64 features in each of four heads";
    EXPECT_EQ(kernel.k, 8192 / 64 * 2 * 128) << "two products with the state in each chunk";
  }
  EXPECT_EQ(sequential, 1);
}

// Twice the tokens take twice the FLOPs and bytes, whatever the kind.
TEST(ChunkedScanTest, GrowsWithTheTokens) {
  for (const StateKind kind :
       {StateKind::kMamba2, StateKind::kGatedDelta, StateKind::kKimiDelta, StateKind::kLightning}) {
    ScanShape shape{.kind = kind,
                    .tokens = 4096,
                    .heads = 8,
                    .groups = 8,
                    .key_dim = 64,
                    .value_dim = 64,
                    .chunk = 64};
    const ScanKernels once = chunked_scan(DataType::kBf16, shape);
    shape.tokens *= 2;
    const ScanKernels twice = chunked_scan(DataType::kBf16, shape);
    ASSERT_EQ(once.backward.size(), twice.backward.size());
    for (std::size_t i = 0; i < once.backward.size(); ++i) {
      EXPECT_EQ(twice.backward[i].flops, 2 * once.backward[i].flops) << name_of(kind) << i;
      EXPECT_EQ(twice.backward[i].read, 2 * once.backward[i].read) << name_of(kind) << i;
    }
  }
}

TEST(StateMixerTest, TensorRanksDivideHeadsAndShareGroups) {
  const auto layer = [](std::int64_t tensor) {
    return build_layers(
               mamba2(),
               {.sequence_length = 4096, .tensor = tensor, .sequence_parallel = tensor > 1})
        .block(0);
  };
  EXPECT_EQ(op_named(layer(8), "state_projection").parameters.own, 2560 * (2 * 640 + 2 * 128 + 10));
  EXPECT_DOUBLE_EQ(flops_of(op_named(layer(8), "state_out_projection").forward),
                   flops_of(op_named(layer(1), "state_out_projection").forward) / 8);
}

}  // namespace
}  // namespace stepsim
