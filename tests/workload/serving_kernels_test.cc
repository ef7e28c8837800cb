// Kernels of serving and the loads of experts: FLOPs, bytes and rows counted by hand.

#include <gtest/gtest.h>

#include <numeric>

#include "workload/parts/expert_load.h"
#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

// 8 sequences, 32 heads that share 4 heads of keys, 1,000 keys of 128 + 128.
TEST(ServingKernelsTest, DecodeReadsTheCacheOnceForEachHeadOfKeys) {
  const DecodeShape shape{
      .sequences = 8, .heads = 32, .kv_heads = 4, .keys = 1000, .qk_dim = 128, .v_dim = 128};
  const Kernel kernel =
      attention_decode("decode", {.stored = DataType::kFp8, .library = "vllm"}, shape);
  EXPECT_EQ(kernel.kind, KernelKind::kAttentionDecode);
  EXPECT_EQ(kernel.flops, Flops(2.0 * 8 * 32 * 1000 * 256));
  EXPECT_EQ(kernel.read, Bytes(8 * 4 * 1000 * 256 + 8 * 32 * 128 * 2));
  EXPECT_EQ(kernel.written, Bytes(8 * 32 * 128 * 2));
  EXPECT_EQ(kernel.batch, 8 * 4);
  EXPECT_EQ(kernel.m, 8);
  EXPECT_EQ(kernel.n, 1000);
  DecodeShape windowed = shape;
  windowed.window = 128;
  EXPECT_EQ(attention_decode("decode", {}, windowed).n, 128);
  windowed.window = 2000;
  EXPECT_EQ(attention_decode("decode", {}, windowed).n, 1000);
}

// Two queries (one of them a draft) of 128 heads over latents of 512 + 64.
TEST(ServingKernelsTest, LatentDecodeReadsALatentOnceForAllHeads) {
  const Kernel kernel =
      latent_decode("mla", {}, {.sequences = 3, .heads = 128, .queries = 2, .keys = 500});
  EXPECT_EQ(kernel.kind, KernelKind::kLatentDecode);
  EXPECT_EQ(kernel.flops, Flops(2.0 * 3 * 256 * 500 * (576 + 512)));
  EXPECT_EQ(kernel.read, Bytes(3 * 500 * 576 * 2 + 3 * 256 * 576 * 2));
  EXPECT_EQ(kernel.written, Bytes(3 * 256 * 512 * 2));
  EXPECT_EQ(kernel.batch, 3);
  EXPECT_EQ(kernel.m, 256);
}

TEST(ServingKernelsTest, NarrowWeightsAreReadInTheirOwnType) {
  const MatmulTypes types{.operands = DataType::kBf16, .weights = DataType::kInt8};
  const Kernel kernel = matmul("gemm", types, {.m = 10, .n = 20, .k = 30});
  EXPECT_EQ(kernel.read, Bytes(10 * 30 * 2 + 30 * 20));
  EXPECT_EQ(kernel.stored, DataType::kInt8);
}

std::int64_t sum(const std::vector<std::int64_t>& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

// 8 experts, 2 of them a token, stride 4: token i takes i and i + 4 modulo 8.
TEST(ExpertLoadTest, BalancedTokensTakeExpertsInTurn) {
  using Rows = std::vector<std::int64_t>;
  EXPECT_EQ(balanced_rows({.tokens = 4, .experts = 8, .top_k = 2}), Rows(8, 1));
  EXPECT_EQ(balanced_rows({.tokens = 5, .experts = 8, .top_k = 2}), (Rows{2, 1, 1, 1, 2, 1, 1, 1}));
  EXPECT_EQ(balanced_rows({.tokens = 9, .experts = 8, .top_k = 2}), (Rows{3, 2, 2, 2, 3, 2, 2, 2}));
  // Fewer tokens than the stride spread out: token i takes floor(4 i / 2) and that + 4.
  EXPECT_EQ(balanced_rows({.tokens = 2, .experts = 8, .top_k = 2}), (Rows{1, 0, 1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(balanced_rows({.tokens = 2, .experts = 8, .top_k = 2, .members = 4}), (Rows{1, 0}));
  EXPECT_EQ(balanced_load({.tokens = 2, .experts = 8, .top_k = 2, .members = 4}).active, 1);
}

TEST(ExpertLoadTest, BalancedCopiesAreAllDealt) {
  for (const std::int64_t tokens : {1, 3, 31, 32, 33, 1000}) {
    for (const std::int64_t top_k : {1, 2, 6, 8}) {
      const std::vector<std::int64_t> rows =
          balanced_rows({.tokens = tokens, .experts = 60, .top_k = top_k});
      EXPECT_EQ(sum(rows), tokens * top_k) << tokens << " x " << top_k;
    }
  }
}

TEST(ExpertLoadTest, APowerLawLoadsSomeExpertsMore) {
  const ExpertShare all{.tokens = 1024, .experts = 128, .top_k = 8};
  const ExpertLoad load = power_law_load(all, 1.01);
  EXPECT_EQ(load.rows, 1024 * 8) << "one member has them all";
  EXPECT_LE(load.active, 128);
  EXPECT_GT(load.tiles[3], balanced_load(all).tiles[3]) << "tiles of 64 rows are less full";
  EXPECT_EQ(power_law_load(all, 1.01), load) << "the same in every run";

  ExpertShare part = all;
  part.members = 16;
  const ExpertLoad fullest = power_law_load(part, 1.01);
  EXPECT_GT(fullest.rows, 1.5 * 1024 * 8 / 16) << "the fullest member has more than its share";
  EXPECT_LE(fullest.rows, 1024 * 8) << "no expert gets more than every token";
  EXPECT_LE(fullest.active, 8);
}

TEST(ExpertLoadTest, APowerLawOfFewTokensReachesFewExperts) {
  const ExpertLoad load = power_law_load({.tokens = 4, .experts = 256, .top_k = 8}, 1.01);
  EXPECT_EQ(load.rows, 32);
  EXPECT_LE(load.active, 32);
  EXPECT_GE(load.active, 8);
}

}  // namespace
}  // namespace stepsim
