// Attention to compressed keys and hyper-connections: parameters, pairs, FLOPs and bytes counted by
// hand.

#include "workload/mixers/compressed_attention.h"

#include <gtest/gtest.h>

#include "tests/support/layer_ops.h"
#include "workload/inference.h"
#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// DeepSeek-V4-Flash's attention and streams, without experts: one layer of each kind.
ModelSpec compressed(std::string pattern = "LCH") {
  ModelSpec model{.name = "compressed",
                  .layers = static_cast<std::int64_t>(pattern.size()),
                  .hidden = 4096,
                  .attention = {.heads = 64,
                                .kv_heads = 1,
                                .head_dim = 512,
                                .query_rank = 1024,
                                .sinks = true,
                                .window = 128},
                  .mlp = {.width = 2048},
                  .embedding = {.vocabulary = 1024}};
  model.mixer_pattern = std::move(pattern);
  model.indexer = {.heads = 64, .head_dim = 128, .top_k = 512};
  model.compressed = {
      .ratio = 4, .heavy_ratio = 128, .rope_dim = 64, .output_groups = 8, .output_rank = 1024};
  model.hyper = {.streams = 4, .sinkhorn_iterations = 20};
  return model;
}

constexpr std::int64_t kWindowLayer =
    4096 * (1024 + 512) + (1024 + 512)        // vectors of queries and keys, their norms
    + 1024 * 64 * 512 + 64                    // queries of all heads, sinks
    + 8 * (8 * 512) * 1024 + 8 * 1024 * 4096  // groups of heads, and out
    + 2 * (4 * 4096 * 24 + 24 + 3)            // two mappings of four streams
    + 3 * 4096 * 2048 + 2 * 4096;             // the MLP, two norms

TEST(CompressedAttentionTest, LayersHaveTheParametersOfTheirMatrices) {
  const ModelSpec model = compressed();
  ASSERT_EQ(check(model), std::vector<Problem>{});
  const ModelLayers layers = build_layers(model, {.sequence_length = 4096});
  EXPECT_EQ(layers.block(0).parameters(), kWindowLayer);
  const std::int64_t chosen = 4096 * 2048 + 4 * 1024 + 512         // two values and two weights
                              + 4096 * (512 + 64) + 4 * 256 + 128  // those of the indexer
                              + 1024 * 64 * 128;                   // its queries
  EXPECT_EQ(layers.block(1).parameters(), kWindowLayer + chosen);
  EXPECT_EQ(layers.block(2).parameters(), kWindowLayer + 4096 * 1024 + 128 * 512 + 512);
  // A projection of all streams gives each of the four its weight before the head.
  EXPECT_EQ(op_named(layers.head, "head_mapping").parameters.own, 4 * (4 * 4096) + 4 + 1);
}

// Query i scores min(i, 128) keys of the window, and i / 128 or min(i / 4, 512) compressed ones.
TEST(CompressedAttentionTest, PairsAreThoseOfTheWindowAndOfCompressedKeys) {
  const ModelSpec model = compressed();
  const double s = 4096, window = s * 128 - 128.0 * 128 / 2;
  EXPECT_DOUBLE_EQ(pairs_of(model, kind_of(model, 0), 4096), window);
  EXPECT_DOUBLE_EQ(pairs_of(model, kind_of(model, 1), 4096),
                   window + (s * 512 - 4 * 512.0 * 512 / 2));
  EXPECT_DOUBLE_EQ(pairs_of(model, kind_of(model, 2), 4096), window + s * s / 2 / 128);
}

TEST(CompressedAttentionTest, ModelFlopsCountPairsTwiceTheWidthAndTheIndexer) {
  const ModelSpec model = compressed();
  const double s = 4096, window = s * 128 - 128.0 * 128 / 2;
  const double pairs = 3 * window + (s * 512 - 2 * 512.0 * 512) + s * s / 256;
  const double chosen = s * 512 - 2 * 512.0 * 512, scored = s * s / 8;
  const double index = 2.0 * 64 * 128;
  const double weights = 6 * s * static_cast<double>(matmul_parameter_count(model));
  EXPECT_DOUBLE_EQ(model_flops(model, 1, 4096, AttentionFlops::kCausal),
                   weights + 3 * 2 * pairs * 64 * 1024 + index * (scored + 2 * chosen));
}

// The kernel counts the pairs of its keys: n of each query, on average.
TEST(CompressedAttentionTest, KernelsReadListsOfKeys) {
  const ModelLayers layers = build_layers(compressed(), {.sequence_length = 4096});
  const LayerOp& attention = op_named(layers.block(1), "attention");
  EXPECT_TRUE(attention.forward[0].gathered);
  EXPECT_EQ(attention.forward[0].n, 510);  // 126 of the window and 384 chosen
  EXPECT_EQ(attention.input_gradient[0].n, 510);
  const double chosen = 4096.0 * 512 - 2 * 512.0 * 512;
  const std::int64_t keys = 4096 + 1024;
  EXPECT_EQ(attention.forward[0].read,
            Bytes(2 * (4096 * 64 * 512 + keys * 512 + static_cast<std::int64_t>(chosen) * 512)));
}

// Four streams stand where one residual did: in what a branch keeps and in what stages hand on.
TEST(CompressedAttentionTest, StreamsAreKeptAndHandedOn) {
  const ModelSpec model = compressed();
  ModelSpec plain = model;
  plain.hyper = {};
  const ModelLayers with = build_layers(model, {.sequence_length = 4096});
  const ModelLayers without = build_layers(plain, {.sequence_length = 4096});
  const Bytes stream(4096 * 4096 * 2);
  EXPECT_EQ(with.boundary, 4 * without.boundary);
  EXPECT_EQ(with.tensor_boundary, without.tensor_boundary);
  EXPECT_EQ(op_named(with.block(0), "attention_mapping").saved.total, 4 * stream);
  EXPECT_EQ(op_named(with.block(0), "attention_residual").saved.total, stream);
  EXPECT_EQ(with.block(0).saved(), without.block(0).saved() + 2 * 5 * stream);
}

TEST(CompressedAttentionTest, APredictionMayHaveABlockOfItsOwn) {
  ModelSpec model = compressed("LCHC");
  model.prediction = {.modules = 1, .block = "LD"};
  ASSERT_EQ(check(model), std::vector<Problem>{});
  const std::int64_t entry = 2 * 4096 * 4096 + 2 * 4096, head = 4 * (4 * 4096) + 5 + 4096;
  EXPECT_EQ(prediction_parameter_count(model), kWindowLayer + entry + head);
  model.mixer_pattern = "CHCC";
  model.prediction.block = "LD";
  EXPECT_EQ(build_layers(model, {.sequence_length = 64}).prediction[0].kind_of_block, 2U)
      << "no layer has its kind";
  model.prediction.block = "GD";
  EXPECT_EQ(check(model).front().field, "prediction_block");
}

// A request keeps vectors of the window and of compressed keys, and those of the indexer in fp8.
TEST(CompressedAttentionTest, TheCacheHoldsTheWindowAndCompressedKeys) {
  const ModelSpec model = compressed();
  const auto cached = [&](std::int64_t layer, std::int64_t tokens) {
    return cache_size(model, kind_of(model, layer), 1, DataType::kBf16, tokens);
  };
  EXPECT_EQ(cached(0, 65536), Bytes(128 * 512 * 2));
  EXPECT_EQ(cached(1, 65536), Bytes(128 * 512 * 2 + 16384 * (512 * 2 + 128)));
  EXPECT_EQ(cached(2, 65536), Bytes(128 * 512 * 2 + 512 * 512 * 2));
}

TEST(CompressedAttentionTest, SaysWhatDoesNotGoTogether) {
  const auto wrong = [](auto change) {
    ModelSpec model = compressed();
    change(model);
    const std::vector<Problem> problems = check(model);
    return problems.empty() ? std::string() : problems.front().field;
  };
  EXPECT_EQ(wrong([](ModelSpec& m) { m.mixer_pattern = "LCG"; }), "mixer_pattern");
  EXPECT_EQ(wrong([](ModelSpec& m) { m.attention.kv_heads = 2; }), "kv_heads");
  EXPECT_EQ(wrong([](ModelSpec& m) { m.compressed.ratio = 0; }), "compressed.ratio");
  EXPECT_EQ(wrong([](ModelSpec& m) { m.compressed.output_groups = 7; }),
            "compressed.output_groups");
  EXPECT_EQ(wrong([](ModelSpec& m) { m.hyper.streams = 1; }), "hyper.streams");
  EXPECT_EQ(wrong([](ModelSpec& m) { m.indexer = {}; }), "mixer_pattern");
}

}  // namespace
}  // namespace stepsim
