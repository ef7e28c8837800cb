// Layers that share weights, vectors of each layer, biases of both branches, and what serving keeps
// of a state: counted by hand.

#include "workload/mixers/shared_block.h"

#include <gtest/gtest.h>

#include "tests/support/layer_ops.h"
#include "workload/layers.h"
#include "workload/mixers/state_mixer.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

constexpr std::int64_t kHidden = 256;
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kHeadDim = 64;
constexpr std::int64_t kWidth = 512;
constexpr std::int64_t kRank = 16;

ModelSpec zamba() {
  ModelSpec model{.name = "shared",
                  .layers = 8,
                  .hidden = kHidden,
                  .attention = {.heads = kHeads, .kv_heads = kHeads, .head_dim = kHeadDim},
                  .mlp = {.width = kWidth},
                  .embedding = {.vocabulary = 1000}};
  model.embedding.tied = true;
  model.mixer_pattern = "SZ";
  model.mlp_pattern = "-";
  model.state = {.kind = StateKind::kMamba2,
                 .heads = 8,
                 .groups = 1,
                 .key_dim = 32,
                 .value_dim = 64,
                 .convolution = 4};
  model.shared = {.blocks = 2, .adapter_rank = kRank};
  return model;
}

constexpr std::int64_t kState =
    kHidden * (2 * 512 + 2 * 32 + 8) + (512 + 64) * 5 + 3 * 8 + 512 + 512 * kHidden + kHidden;
constexpr std::int64_t kBlock = 2 * kHidden + 2 * kHidden * 3 * kHeads * kHeadDim +
                                kHeads * kHeadDim * kHidden + kHidden + 3 * kHidden * kWidth;
constexpr std::int64_t kOwn = kHidden * kHidden + kHidden * kRank + kRank * 2 * kWidth;

// Zamba 2: eight states; four layers with a block, of which there are two.
TEST(SharedBlockTest, EachBlockIsCountedOnce) {
  const ModelSpec model = zamba();
  ASSERT_TRUE(check(model).empty());
  EXPECT_EQ(parameter_count(model), 8 * kState + 2 * kBlock + 4 * kOwn + 1001 * kHidden);
  EXPECT_EQ(kind_of(model, 1).borrows, false);
  EXPECT_EQ(kind_of(model, 3).borrows, false);
  EXPECT_EQ(kind_of(model, 5).borrows, true);
  const ModelLayers layers = build_layers(model, {.sequence_length = 64});
  EXPECT_EQ(layers.block(5).borrowed(), kBlock);
  EXPECT_EQ(layers.block(5).parameters(), kState + kOwn);
}

// Zamba 2 of 1.2 B: each layer has narrow paths of its own beside the shared queries, keys, values.
TEST(SharedBlockTest, AttentionCanHaveAdapters) {
  ModelSpec model = zamba();
  const std::int64_t before = parameter_count(model);
  model.shared.attention_adapter_rank = kRank;
  EXPECT_EQ(parameter_count(model) - before,
            4 * 3 * (2 * kHidden * kRank + kRank * kHeads * kHeadDim));
}

// The block's weights multiply in every layer that has it.
TEST(SharedBlockTest, EachUseOfABlockCountsInFlops) {
  ModelSpec more = zamba();
  more.layers = 10;
  const double of_two_layers = model_flops(more, 1, 64, AttentionFlops::kCausal) -
                               model_flops(zamba(), 1, 64, AttentionFlops::kCausal);
  const double norms_and_filters = 3.0 * kHidden + 2 * (3 * 8 + 512 + kHidden + 576 * 5);
  const double matmuls = 2 * kState + kBlock + kOwn - norms_and_filters;
  const double scores = 3 * 2 * (64.0 * 64 / 2) * kHeads * 2 * kHeadDim;
  const double states = 3 * 2 * 7.0 * 64 * 8 * 32 * 64;
  EXPECT_NEAR(of_two_layers, 6 * 64 * matmuls + scores + states, 1.0);
}

TEST(SharedBlockTest, PatternsNeedABlock) {
  ModelSpec model = zamba();
  model.shared = {};
  ASSERT_EQ(check(model).size(), 1U);
  EXPECT_EQ(check(model).front().message, "has layers Z, but shared.blocks is 0");
  model = zamba();
  model.mixer_pattern = "S";
  ASSERT_EQ(check(model).size(), 1U);
  EXPECT_EQ(check(model).front().field, "shared.blocks");
}

// Gemma 4 E2B: a table of all layers' vectors, a projection beside it, and a gate in each layer.
TEST(LayerEmbeddingTest, ParametersAreThoseOfThePublishedShape) {
  ModelSpec model{.name = "vectors",
                  .layers = 4,
                  .hidden = kHidden,
                  .attention = {.heads = kHeads, .kv_heads = kHeads, .head_dim = 32},
                  .mlp = {.width = kWidth},
                  .embedding = {.vocabulary = 1000}};
  const std::int64_t before = parameter_count(model);
  model.embedding.of_layers = 32;
  const std::int64_t tables = 1000 * 4 * 32 + kHidden * 4 * 32 + 32;
  const std::int64_t gates = 4 * (2 * kHidden * 32 + kHidden);
  EXPECT_EQ(parameter_count(model) - before, tables + gates);
}

// Attention and a state side by side have a bias each behind their projections.
TEST(MixerTest, BothBranchesHaveTheirBias) {
  ModelSpec model = zamba();
  model.shared = {};
  model.mixer_pattern = "B";
  const std::int64_t none = parameter_count(model);
  model.state.bias = true;
  const std::int64_t of_states = parameter_count(model) - none;
  EXPECT_EQ(of_states, 8 * (2 * 512 + 2 * 32 + 8 + kHidden));
  model.attention.bias = true;
  EXPECT_EQ(parameter_count(model) - none - of_states, 8 * (3 * kHeads * kHeadDim + kHidden));
}

// Nemotron-H 8B: 128 heads of 64 x 128, 8 groups, 4 taps: 4.2 MB of state, 61 kB of tokens.
TEST(StateMixerTest, ASequenceKeepsStatesAndTheLastTokens) {
  const StateSpec state{.kind = StateKind::kMamba2,
                        .heads = 128,
                        .groups = 8,
                        .key_dim = 128,
                        .value_dim = 64,
                        .convolution = 4};
  EXPECT_EQ(sequence_state_size(state, DataType::kBf16),
            Bytes(128 * 64 * 128 * 4 + 3 * (128 * 64 + 2 * 8 * 128) * 2));
  const StateSpec filter{.kind = StateKind::kShort,
                         .heads = 2048,
                         .groups = 1,
                         .key_dim = 1,
                         .value_dim = 1,
                         .convolution = 3};
  EXPECT_EQ(sequence_state_size(filter, DataType::kBf16), Bytes(2 * 2048 * 2));
}

}  // namespace
}  // namespace stepsim
