// Attention over a cache and layers of experts (sim/chips/decode_attention.h, expert_layer.h),
// against times computed by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/chips/chip_spec.h"

namespace stepsim {
namespace {

using namespace std::chrono_literals;

// 100 units, 1 PFLOP/s of bf16, 1 TB/s.
ServingChip round_chip() {
  return {
      .peak = 1e15, .bandwidth = 1e12, .units = 100, .cache = {}, .launch_overhead = Duration(3us)};
}

// `sequences` of one head of keys with 4 queries, 128 wide, in bf16: 512 bytes a key.
Kernel decode(std::int64_t sequences, std::int64_t keys) {
  const double queries = 4.0 * static_cast<double>(sequences);
  return {.name = "decode",
          .kind = KernelKind::kAttentionDecode,
          .flops = Flops(2 * queries * static_cast<double>(keys) * 256),
          .batch = sequences,
          .m = 4,
          .n = keys,
          .k = 128,
          .stored = DataType::kBf16};
}

DecodeEfficiency round_kernel() {
  DecodeEfficiency efficiency;
  efficiency.start = Duration(5us);
  efficiency.block_start = 2us;
  efficiency.block_bandwidth = Bandwidth(10e9);
  efficiency.memory_fraction = 0.5;
  efficiency.split_start = 1s;  // never worth it
  return efficiency;
}

double seconds(const DecodeTime& time) {
  return time.overlapped_s + to_seconds(time.around);
}

// 640 keys of 512 bytes at 10 GB/s: 32.768 us and 2 us to start, on all 100 units at once. Memory:
// 100 x 640 x 512 bytes at 0.5 TB/s = 65.536 us.
TEST(DecodeAttentionTest, BlocksAndMemoryOverlap) {
  const DecodeTime time = time_of_decode(decode(100, 640), round_kernel(), round_chip());
  EXPECT_NEAR(time.memory_s, 65.536e-6, 1e-12);
  EXPECT_NEAR(time.overlapped_s, std::cbrt(std::pow(34.768, 3) + std::pow(65.536, 3)) * 1e-6,
              1e-12);
  EXPECT_EQ(time.around, Duration(5us));
}

// 150 blocks on 100 units are 1.5 waves, the last of which counts as three quarters of one.
TEST(DecodeAttentionTest, ALastWaveCountsHalfAsFull) {
  DecodeEfficiency fast = round_kernel();
  ServingChip chip = round_chip();
  chip.bandwidth = 1e20;
  const double one = time_of_decode(decode(100, 640), fast, chip).overlapped_s;
  EXPECT_NEAR(time_of_decode(decode(150, 640), fast, chip).overlapped_s, 1.75 * one, 1e-12);
  fast.blocks_per_unit = 1.5;
  EXPECT_NEAR(time_of_decode(decode(150, 640), fast, chip).overlapped_s, one, 1e-12);
}

// In a call with prompts each of 4 query heads is a block: 400 on 100 units are 4 waves of 1 us and
// 640 keys of 512 bytes at 20 GB/s (16.384 us). Memory is read once. The call starts with the
// prompts.
TEST(DecodeAttentionTest, BesidePromptsABlockHasOneHead) {
  DecodeEfficiency efficiency = round_kernel();
  efficiency.beside_prompts = {.start = 1us, .bandwidth = Bandwidth(20e9)};
  efficiency.split_start = 0us;
  Kernel kernel = decode(100, 640);
  const double alone = seconds(time_of_decode(kernel, efficiency, round_chip()));
  kernel.beside_prompts = true;
  const DecodeTime time = time_of_decode(kernel, efficiency, round_chip());
  EXPECT_NEAR(time.memory_s, 65.536e-6, 1e-12);
  EXPECT_NEAR(time.overlapped_s, std::cbrt(std::pow(4 * 17.384, 3) + std::pow(65.536, 3)) * 1e-6,
              1e-12);
  EXPECT_EQ(time.around, Duration(0));
  EXPECT_GT(seconds(time), alone - 5e-6);
  efficiency.beside_prompts.reset();
  EXPECT_EQ(seconds(time_of_decode(kernel, efficiency, round_chip())),
            seconds(time_of_decode(decode(100, 640), efficiency, round_chip())));
}

// One sequence of 1,024 keys in 16 parts of 64: 2 us + 64 x 512 bytes / 10 GB/s = 5.2768 us.
TEST(DecodeAttentionTest, ALongContextIsSplitOverIdleUnits) {
  DecodeEfficiency efficiency = round_kernel();
  efficiency.split_start = 4us;
  ServingChip chip = round_chip();
  chip.bandwidth = 1e20;
  const DecodeTime time = time_of_decode(decode(1, 1024), efficiency, chip);
  EXPECT_NEAR(time.overlapped_s, 5.2768e-6, 1e-12);
  EXPECT_NEAR(to_seconds(time.around), 9e-6, 2e-12);
  efficiency.split_start = 60us;  // 1,024 keys in one block take 54.4288 us
  EXPECT_NEAR(time_of_decode(decode(1, 1024), efficiency, chip).overlapped_s, 54.4288e-6, 1e-12);
}

// 64 rows (those of a tile) of 2 x 256 FLOPs a key, at 10 TFLOP/s of a unit: 3.2768 ns a key.
TEST(DecodeAttentionTest, ABlockComputesWholeTilesOfRows) {
  DecodeEfficiency efficiency = round_kernel();
  efficiency.block_bandwidth.reset();
  ServingChip chip = round_chip();
  chip.bandwidth = 1e20;
  Kernel kernel = decode(100, 6400);
  kernel.m = 64;
  kernel.flops = Flops(2.0 * 6400 * 6400 * 256);
  EXPECT_NEAR(time_of_decode(kernel, efficiency, chip).overlapped_s, (2 + 6.4 * 3.2768) * 1e-6,
              1e-11);
  kernel.m = 65;  // two blocks of 64 rows
  kernel.flops = Flops(2.0 * 6500 * 6400 * 256);
  EXPECT_NEAR(time_of_decode(kernel, efficiency, chip).overlapped_s, 2 * (2 + 6.4 * 3.2768) * 1e-6,
              1e-11);
  efficiency.row_tile = 128;  // one of 80
  EXPECT_NEAR(time_of_decode(kernel, efficiency, chip).overlapped_s,
              (2 + 6.4 * 3.2768 * 80 / 64) * 1e-6, 1e-11);
  efficiency.narrow_rows = 65;  // five of 16
  EXPECT_NEAR(time_of_decode(kernel, efficiency, chip).overlapped_s,
              5 * (2 + 6.4 * 3.2768 / 4) * 1e-6, 1e-11);
}

// A latent of 128 is key and value: half the bytes of a key and a value of 128.
TEST(DecodeAttentionTest, ALatentIsReadOnce) {
  Kernel kernel = decode(100, 640);
  const double both = time_of_decode(kernel, round_kernel(), round_chip()).memory_s;
  kernel.kind = KernelKind::kLatentDecode;
  EXPECT_NEAR(time_of_decode(kernel, round_kernel(), round_chip()).memory_s, both / 2, 1e-15);
  kernel.kind = KernelKind::kAttentionDecode;
  kernel.stored = DataType::kFp8;
  EXPECT_NEAR(time_of_decode(kernel, round_kernel(), round_chip()).memory_s, both / 2, 1e-15);
}

// The cache is 32.768 MB, read at 4 TB/s.
TEST(DecodeAttentionTest, ARepeatedKernelFindsInTheCacheWhatFits) {
  ServingChip chip = round_chip();
  chip.cache = ChipCache{.capacity = Bytes(32'768'000), .bandwidth = Bandwidth(4e12)};
  Kernel kernel = decode(100, 640);  // as large
  EXPECT_NEAR(time_of_decode(kernel, round_kernel(), chip).memory_s, 65.536e-6, 1e-12)
      << "nothing was read before";
  kernel.repeated = true;
  EXPECT_NEAR(time_of_decode(kernel, round_kernel(), chip).memory_s, 8.192e-6, 1e-12);
  EXPECT_DOUBLE_EQ(share_from_memory(32'768'000, chip.cache), 0);
  EXPECT_DOUBLE_EQ(share_from_memory(1.5 * 32'768'000, chip.cache), 0.5);
  EXPECT_DOUBLE_EQ(share_from_memory(2 * 32'768'000, chip.cache), 1);
  EXPECT_DOUBLE_EQ(share_from_memory(1, std::nullopt), 1);
}

TEST(DecodeAttentionTest, MoreKeysNeverTakeLessAndMoreUnitsNeverMore) {
  DecodeEfficiency efficiency = round_kernel();
  efficiency.split_start = 3us;
  for (const bool repeated : {false, true}) {
    for (const std::int64_t sequences : {1, 3, 16, 130, 700}) {
      double before = 0;
      for (std::int64_t keys = 1; keys < 200'000; keys += 1 + keys / 7) {
        ServingChip chip = round_chip();
        chip.cache = ChipCache{.capacity = Bytes(20'000'000), .bandwidth = Bandwidth(5e12)};
        Kernel kernel = decode(sequences, keys);
        kernel.repeated = repeated;
        const double time = seconds(time_of_decode(kernel, efficiency, chip));
        EXPECT_GE(time, before) << sequences << " x " << keys;
        before = time;
        chip.units += 37;  // each as fast as before
        chip.peak *= 1.37;
        EXPECT_LE(seconds(time_of_decode(kernel, efficiency, chip)), time)
            << sequences << " x " << keys;
      }
    }
  }
}

TEST(DecodeAttentionTest, TheFirstKernelThatFitsIsTaken) {
  std::vector<DecodeEfficiency> entries(4);
  entries[0].library = "a";
  entries[0].stored = DataType::kFp8;
  entries[1].library = "a";
  entries[1].head_dim = 64;
  entries[2].library = "a";
  entries[2].own_heads = true;
  entries[3].library = "b";
  Kernel kernel = decode(1, 64);
  kernel.library = "a";
  EXPECT_EQ(find_decode(entries, kernel), nullptr) << "bf16, 128 wide, shared keys";
  kernel.stored = DataType::kFp8;
  EXPECT_EQ(find_decode(entries, kernel), &entries[0]);
  kernel.stored = DataType::kBf16;
  kernel.k = 64;
  EXPECT_EQ(find_decode(entries, kernel), &entries[1]);
  kernel.k = 128;
  kernel.m = 1;
  EXPECT_EQ(find_decode(entries, kernel), &entries[2]);
  kernel.m = 4;
  kernel.library = "";
  EXPECT_EQ(find_decode(entries, kernel), &entries[3]) << "any library";
  kernel.library = "c";
  EXPECT_EQ(find_decode(entries, kernel), nullptr);
}

// Experts with 0, 1 and 17 rows.
TEST(ExpertLayerTest, ALoadCountsRowsExpertsAndTiles) {
  const std::vector<std::int64_t> rows{0, 1, 17};
  const ExpertLoad load = load_of(rows);
  EXPECT_EQ(load.rows, 18);
  EXPECT_EQ(load.active, 2);
  EXPECT_EQ(load.tiles, (std::array<double, 5>{1 + 3, 1 + 2, 1 + 1, 1 + 1, 1 + 1}));
  const ExpertLoad none = load_of({});
  const std::vector<ExpertLoad> both{load, none};
  EXPECT_EQ(mean_of(both).rows, 9);
  EXPECT_EQ(mean_of(both).tiles[0], 2);
}

// 100 experts of 64 rows each, hidden and inter 1,000: both fit whole waves of 64 x 64 or 64 x 128
// tiles, of which the latter are half as many.
ExpertLayer round_layer() {
  const std::vector<std::int64_t> rows(100, 64);
  return {.tokens = 6400,
          .top_k = 1,
          .hidden = 1024,
          .inter = 1024,
          .gated = true,
          .load = load_of(rows)};
}

// First matmul: 100 x 2048 / 128 = 1,600 tiles of 2 x 64 x 128 x 1024 FLOPs at 10 TFLOP/s of a
// unit: 16 waves of 1.6777216 us. The second has half of them. No memory.
TEST(ExpertLayerTest, MatmulsTakeWavesOfTiles) {
  ServingChip chip = round_chip();
  chip.bandwidth = 1e20;
  ExpertEfficiency efficiency;
  efficiency.start = 7us;
  efficiency.least_rows = 64;
  const ExpertTime time = time_of_experts(round_layer(), efficiency, chip);
  EXPECT_NEAR(time.matmuls_s, 24 * 1.6777216e-6, 1e-12);
  EXPECT_EQ(time.starts, Duration(7us));
  efficiency.least_rows = 128;  // 64 rows pay for 128
  EXPECT_NEAR(time_of_experts(round_layer(), efficiency, chip).matmuls_s, 48 * 1.6777216e-6, 1e-12);
  efficiency.expert_start = 10ns;
  EXPECT_EQ(time_of_experts(round_layer(), efficiency, chip).starts, Duration(8us));
}

// 3 x 1024 x 1024 weights of 2 bytes for each of 100 experts, read at 1 TB/s, and 6,400 rows of
// 1,024 in, 2,048 out, 1,024 in and 1,024 out.
TEST(ExpertLayerTest, WeightsOfExpertsWithRowsAreReadOnce) {
  ServingChip chip = round_chip();
  chip.peak = 1e22;
  const double rows = 2.0 * 6400 * (1024 + 2048 + 1024 + 1024) / 1e12;
  const double weights = 100.0 * 3 * 1024 * 1024 * 2 / 1e12;
  ExpertLayer layer = round_layer();
  EXPECT_NEAR(time_of_experts(layer, {}, chip).matmuls_s, weights + rows, 1e-9);
  layer.weights = DataType::kInt8;
  EXPECT_NEAR(time_of_experts(layer, {}, chip).matmuls_s, weights / 2 + rows, 1e-9);
  layer.gated = false;
  EXPECT_NEAR(time_of_experts(layer, {}, chip).matmuls_s,
              weights / 3 + rows - 2.0 * 6400 * 1024 / 1e12, 1e-9);
}

// Of 6,400 copies 1,600 are this chip's: 1,600 + 0.5 x 4,800 rows of 2,048 values, 3 bytes each.
TEST(ExpertLayerTest, RowsOfOtherChipsExpertsCostWhatTheLibrarySays) {
  ExpertLayer layer = round_layer();
  const std::vector<std::int64_t> rows(25, 64);
  layer.load = load_of(rows);
  ExpertEfficiency efficiency;
  efficiency.row_bytes = 3;
  efficiency.remote_rows = 0.5;
  EXPECT_NEAR(time_of_experts(layer, efficiency, round_chip()).rows_s, 4000.0 * 2048 * 3 / 1e12,
              1e-15);
}

TEST(ExpertLayerTest, MoreRowsNeverTakeLessAndMoreUnitsNeverMore) {
  ExpertEfficiency efficiency;
  efficiency.operand_bandwidth = Bandwidth(1e13);
  efficiency.inner_ramp = 200;
  efficiency.row_bytes = 4;
  Duration before{};
  for (std::int64_t each = 1; each < 5000; each += 1 + each / 9) {
    ExpertLayer layer = round_layer();
    layer.tokens = 100 * each;
    const std::vector<std::int64_t> rows(100, each);
    layer.load = load_of(rows);
    ServingChip chip = round_chip();
    const Duration time = time_of_experts(layer, efficiency, chip).total;
    EXPECT_GE(time, before) << each;
    before = time;
    chip.units += 48;
    chip.peak *= 1.48;
    efficiency.operand_bandwidth = Bandwidth(1.48e13);
    EXPECT_LE(time_of_experts(layer, efficiency, chip).total, time) << each;
    efficiency.operand_bandwidth = Bandwidth(1e13);
  }
}

TEST(ExpertLayerTest, TheKernelFitsTypesAndLibrary) {
  std::vector<ExpertEfficiency> entries(3);
  entries[0].library = "a";
  entries[0].type = DataType::kBf16;
  entries[0].weights = DataType::kMxfp4;
  entries[1].library = "a";
  entries[1].type = DataType::kBf16;
  entries[2].library = "b";
  ExpertLayer layer = round_layer();
  EXPECT_EQ(find_experts(entries, layer), &entries[1]);
  layer.weights = DataType::kMxfp4;
  EXPECT_EQ(find_experts(entries, layer), &entries[0]);
  layer.weights = DataType::kInt4;
  EXPECT_EQ(find_experts(entries, layer), nullptr);
  layer.weights.reset();
  layer.library = "b";
  EXPECT_EQ(find_experts(entries, layer), &entries[2]) << "any type";
}

// A chip without serving kernels: launch_overhead, and no losses. 64 keys of 512 bytes a sequence.
TEST(ServingKernelsTest, AChipWithoutConstantsHasNoLosses) {
  ChipSpec chip;
  chip.peak = peaks_of_all_types(Throughput(1e15));
  chip.memory_bandwidth = Bandwidth(1e12);
  chip.launch_overhead = 3us;
  const KernelTime time = time_of(decode(1000, 640), chip);
  EXPECT_TRUE(time.total > Duration(3us));
  EXPECT_NEAR(time.memory_s, 1000.0 * 640 * 512 / 1e12, 1e-12);
  EXPECT_EQ(time.overhead, Duration(3us));
  EXPECT_GT(time_of(round_layer(), chip).total, Duration());
}

// 1,000 x 1,000 x 1,000 with 4 bits of weights: 2 MB + 0.5 MB and a scale of two bytes for each
// 128.
TEST(ServingKernelsTest, NarrowWeightsHaveMatmulConstantsOfTheirOwn) {
  ChipSpec chip;
  chip.peak = peaks_of_all_types(Throughput(1e14));
  chip.memory_bandwidth = Bandwidth(1e12);
  chip.efficiency.matmul_of.resize(2);
  chip.efficiency.matmul_of[0].type = DataType::kBf16;
  chip.efficiency.matmul_of[0].peak_fraction = 0.5;
  chip.efficiency.matmul_of[1].type = DataType::kBf16;
  chip.efficiency.matmul_of[1].weights = DataType::kInt4;
  chip.efficiency.matmul_of[1].peak_fraction = 0.25;
  Kernel kernel{.name = "cube",
                .kind = KernelKind::kMatmul,
                .flops = Flops(2e9),
                .batch = 1,
                .m = 1000,
                .n = 1000,
                .k = 1000};
  EXPECT_EQ(time_of(kernel, chip).total, Duration(40us));
  kernel.stored = DataType::kInt4;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(80us));
  kernel.stored = DataType::kInt8;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(40us)) << "as the type's own";
  chip.efficiency.matmul_of[1].weights.reset();
  const std::vector<Problem> problems = check(chip);
  EXPECT_TRUE(std::ranges::any_of(problems, [](const Problem& problem) {
    return problem.field == "efficiency.matmul_of[1].type";
  }));
}

// Two tokens that each choose an expert with chance 1/4: none 9/16, one 6/16, both 1/16.
TEST(ExpertLoadTest, IsTheMeanOverIndependentChoices) {
  const ExpertLoad load = expected_load(2, 8, 0.25);
  EXPECT_DOUBLE_EQ(load.rows, 4);
  EXPECT_NEAR(load.active, 8 * 7.0 / 16, 1e-12);
  for (const double tiles : load.tiles) EXPECT_NEAR(tiles, load.active, 1e-12);
}

// Eight experts, the chances of which lie evenly between 1 and 4 on a scale of logarithms.
TEST(ExpertLoadTest, PopularExpertsGetMoreOfTheRows) {
  const ExpertLoad even = expected_load(2, 8, 0.25);
  const ExpertLoad spread = expected_load(2, 8, 0.25, 4);
  EXPECT_DOUBLE_EQ(spread.rows, even.rows);
  double sum = 0;
  for (int i = 0; i < 8; ++i) sum += std::pow(4, (i + 0.5) / 8);
  double active = 0;
  for (int i = 0; i < 8; ++i) {
    const double chance = 0.25 * 8 * std::pow(4, (i + 0.5) / 8) / sum;
    active += 1 - (1 - chance) * (1 - chance);
  }
  EXPECT_NEAR(spread.active, active, 1e-9);
  EXPECT_LT(spread.active, even.active);
  EXPECT_NEAR(active_experts(2, 8, 0.25, 4), active, 1e-9);
  EXPECT_NEAR(active_experts(2, 8, 0.25, 1), even.active, 1e-9);
}

TEST(ExpertLoadTest, ManyRowsLeaveTheLastTileHalfFull) {
  const ExpertLoad counted = expected_load(63'000, 4, 1.0 / 32);  // 1,969 rows each
  const ExpertLoad estimated = expected_load(65'000, 4, 1.0 / 32);
  EXPECT_NEAR(counted.active, 4, 1e-9);
  for (std::size_t tile = 0; tile < kExpertTiles.size(); ++tile) {
    EXPECT_NEAR(counted.tiles[tile] / 63, estimated.tiles[tile] / 65,
                0.01 * counted.tiles[tile] / 63);
  }
}

TEST(ExpertLoadTest, ExpertsThatAllChooseHaveAllTokens) {
  const ExpertLoad load = expected_load(100, 2, 1);
  EXPECT_DOUBLE_EQ(load.rows, 200);
  EXPECT_DOUBLE_EQ(load.active, 2);
  EXPECT_DOUBLE_EQ(load.tiles.back(), 2);
}

}  // namespace
}  // namespace stepsim
