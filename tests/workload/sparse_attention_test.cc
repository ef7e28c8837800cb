// Sparse attention: pairs, FLOPs and bytes counted by hand.

#include "workload/mixers/sparse_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/layer_ops.h"
#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// DeepSeek-V3.2's attention (arXiv 2512.02556): 128 heads over latent vectors of 512 + 64, an
// indexer of 64 heads of 128, the best 2,048 tokens.
ModelSpec sparse(std::int64_t layers = 1) {
  ModelSpec model{
      .name = "sparse",
      .layers = layers,
      .hidden = 7168,
      .attention = {.heads = 128, .kv_heads = 128, .head_dim = 192},
      .mlp = {.width = 18432},
      .embedding = {.vocabulary = 129280},
      .latent = {.q_rank = 1536, .kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .v_dim = 128}};
  model.mixer_pattern = "I";
  model.indexer = {.heads = 64, .head_dim = 128, .top_k = 2048};
  return model;
}

// Query i looks at min(i, 2,048) tokens: s k - k^2 / 2 pairs. The indexer scores all s^2 / 2, and
// its gradients go through the chosen ones.
TEST(SparseAttentionTest, ModelFlopsAreThoseOfTheChosenPairsAndTheIndexer) {
  for (const double s : {4096.0, 32768.0, 1048576.0}) {
    const double chosen = s * 2048 - 2048.0 * 2048 / 2;
    const double core = 2 * chosen * 128 * (576 + 512);
    const double index = 2.0 * 64 * 128;  // of a pair
    const ModelSpec model = sparse();
    ASSERT_EQ(check(model), std::vector<Problem>{});
    const double weights = 6 * s * static_cast<double>(matmul_parameter_count(model));
    EXPECT_DOUBLE_EQ(model_flops(model, 1, static_cast<std::int64_t>(s), AttentionFlops::kCausal),
                     weights + 3 * core + index * (s * s / 2 + 2 * chosen));
  }
}

TEST(SparseAttentionTest, AnIndexerHasItsOwnMatrices) {
  const Layer block = build_layers(sparse(), {.sequence_length = 4096}).block(0);
  EXPECT_EQ(op_named(block, "index_query_projection").parameters.own, 1536 * 64 * 128);
  EXPECT_EQ(op_named(block, "index_key_projection").parameters.own, 7168 * (128 + 64) + 2 * 128);
}

TEST(SparseAttentionTest, ScoresPassThroughMemoryAndTheChoiceIsKept) {
  const std::int64_t s = 4096;
  const Layer block = build_layers(sparse(), {.sequence_length = s}).block(0);
  const LayerOp& scores = op_named(block, "index_scores");
  EXPECT_EQ(scores.forward[0].written, Bytes(4 * s * s / 2));
  EXPECT_EQ(scores.forward[1].read, Bytes(4 * s * s / 2));
  EXPECT_EQ(scores.saved.inside, Bytes(s * 2048 * 4));
}

// 576 features of each token that a query has chosen are gathered; values are a part of them.
TEST(SparseAttentionTest, AttentionGathersLatentVectors) {
  const std::int64_t s = 4096, chosen = s * 2048 - 2048 * 2048 / 2;
  const Layer block = build_layers(sparse(), {.sequence_length = s}).block(0);
  const LayerOp& attention = op_named(block, "attention");
  const std::int64_t once = s * 128 * 576 + s * 576;
  EXPECT_EQ(attention.forward[0].read, Bytes(2 * (once + chosen * 576)));
  EXPECT_EQ(attention.saved.input, Bytes(2 * once));
}

TEST(SparseAttentionTest, ALayerThatSharesAChoiceHasNoIndexer) {
  ModelSpec model = sparse(2);
  model.mixer_pattern = "Ii";
  const ModelLayers layers = build_layers(model, {.sequence_length = 4096});
  EXPECT_EQ(layers.block(0).parameters() - layers.block(1).parameters(),
            1536 * 64 * 128 + 7168 * (128 + 64) + 2 * 128);
  model.prediction.modules = 1;
  EXPECT_EQ(build_layers(model, {.sequence_length = 4096}).prediction[0].kind_of_block, 0U)
      << "its block has an indexer of its own";
}

}  // namespace
}  // namespace stepsim
