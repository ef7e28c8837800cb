#include "sim/chips/chip_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include "sim/chips/kernel_energy.h"

namespace stepsim {
namespace {

using namespace literals;

// 100 TFLOP/s, 10 TFLOP/s in fp32, 1 TB/s, without losses or overheads.
ChipSpec round_chip() {
  ChipSpec chip{.name = "round", .memory_bandwidth = 1000_GBps, .memory_capacity = 80_GiB};
  chip.set_peak(DataType::kBf16, 100_TFLOPS);
  chip.set_peak(DataType::kFp32, 10_TFLOPS);
  return chip;
}

// 2 x 1000 x 1000 x 1000 FLOPs: 20 us at 100 TFLOP/s. No bytes.
Kernel cube() {
  return {.name = "cube",
          .kind = KernelKind::kMatmul,
          .flops = Flops(2e9),
          .batch = 1,
          .m = 1000,
          .n = 1000,
          .k = 1000};
}

TEST(KernelTest, KnowsTheSizeAndNameOfEachType) {
  EXPECT_EQ(size_of(DataType::kFp32), 4_B);
  EXPECT_EQ(size_of(DataType::kBf16), 2_B);
  EXPECT_EQ(size_of(DataType::kFp16), 2_B);
  EXPECT_EQ(size_of(DataType::kFp8), 1_B);
  EXPECT_EQ(size_of(DataType::kInt8), 1_B);
  EXPECT_EQ(name_of(DataType::kBf16), "bf16");
  EXPECT_EQ(name_of(DataType::kInt8), "int8");
}

// 32 values of mxfp8 share a scale of a byte, 16 of nvfp4 one; 128 of int4 one of two bytes.
TEST(KernelTest, CountsTheScalesThatAFormatHas) {
  EXPECT_EQ(bytes_of(1024, DataType::kBf16), Bytes(2048));
  EXPECT_EQ(bytes_of(1024, DataType::kMxfp8), Bytes(1024 + 32));
  EXPECT_EQ(bytes_of(1024, DataType::kMxfp4), Bytes(512 + 32));
  EXPECT_EQ(bytes_of(1024, DataType::kNvfp4), Bytes(512 + 64));
  EXPECT_EQ(bytes_of(1024, DataType::kInt4), Bytes(512 + 16));
  EXPECT_EQ(bytes_of(3, DataType::kNvfp4), Bytes(2 + 1)) << "whole bytes, and a scale";
  EXPECT_EQ(size_of(DataType::kNvfp4), 1_B);
  EXPECT_DOUBLE_EQ(mean_bytes_of(DataType::kNvfp4), 4.5 / 8);
  EXPECT_DOUBLE_EQ(mean_bytes_of(DataType::kBf16), 2);
  EXPECT_FALSE(block_scales_of(DataType::kFp8).has_value());
}

TEST(ChipSpecTest, AKernelTakesTheLongerOfComputeAndMemory) {
  Kernel kernel = cube();
  kernel.read = 15_GB / 1000;
  kernel.written = 5_GB / 1000;  // 20 MB together: 20 us at 1 TB/s, as long as the arithmetic
  KernelTime time = time_of(kernel, round_chip());
  EXPECT_DOUBLE_EQ(time.compute_s, 20e-6);
  EXPECT_DOUBLE_EQ(time.memory_s, 20e-6);
  EXPECT_EQ(time.total, Duration(20us));

  kernel.written += 1_MiB;
  time = time_of(kernel, round_chip());
  EXPECT_TRUE(time.memory_bound());
  EXPECT_EQ(time.total, Duration(20us) + 1_MiB / 1000_GBps);

  kernel.read = 0_B;
  EXPECT_FALSE(time_of(kernel, round_chip()).memory_bound());
  EXPECT_EQ(time_of(kernel, round_chip()).total, Duration(20us));
}

TEST(ChipSpecTest, LaunchOverheadIsAddedOnceAndAloneForAnEmptyKernel) {
  ChipSpec chip = round_chip();
  chip.launch_overhead = 3us;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(23us));
  EXPECT_EQ(time_of(Kernel{}, chip).total, Duration(3us));
}

TEST(ChipSpecTest, AMatmulPaysForTilesThatStickOut) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul.tile_m = 128;
  chip.efficiency.matmul.tile_n = 256;
  // 8 x 4 tiles of 128 x 256 cover 1024 x 1024: 1.048576 of the elements are paid for.
  EXPECT_NEAR(to_seconds(time_of(cube(), chip).total), 20.97152e-6, 2e-12);
  Kernel fits = cube();
  fits.m = fits.n = 1024;
  fits.flops = Flops(2.0 * 1024 * 1024 * 1000);
  EXPECT_NEAR(to_seconds(time_of(fits, chip).total), 20.97152e-6, 2e-12)
      << "the same tiles, all full";
}

TEST(ChipSpecTest, AMatmulPaysForTheLastWaveInFull) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul.tile_m = 100;
  chip.efficiency.matmul.tile_n = 100;  // 100 tiles
  chip.efficiency.matmul.compute_units = 100;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(20us)) << "exactly one wave";
  chip.efficiency.matmul.compute_units = 99;
  // Two waves of 99 for 100 tiles: 1.98 times the time.
  EXPECT_EQ(time_of(cube(), chip).total, Duration(39'600'000));
  // A batch shares waves: 99 products of 100 tiles are 100 full waves.
  Kernel batch = cube();
  batch.batch = 99;
  batch.flops = Flops(99 * 2e9);
  EXPECT_EQ(time_of(batch, chip).total, Duration(1'980us));
}

TEST(ChipSpecTest, ALastWaveMayCostLessThanAFullOne) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul = {.tile_m = 100, .tile_n = 100, .compute_units = 80, .last_wave = 0.4};
  // 100 tiles on 80 units are 1.25 waves, and 0.75 more would be two; a full one takes 16 us.
  EXPECT_EQ(time_of(cube(), chip).total, Duration(24'800'000))
      << "1.25 + 0.4 x 0.75 waves of 16 us";
  chip.efficiency.matmul.compute_units = 200;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(40us)) << "a single wave counts in full";
}

// 3 and 4 make 5: at half of the loss 4.5, whichever of the two is longer.
TEST(ChipSpecTest, MemoryAndArithmeticMayNotHideEachOther) {
  ChipSpec chip = round_chip();
  const Duration compute = time_of(cube(), chip).total;
  Kernel kernel = cube();
  kernel.read =
      Bytes(static_cast<std::int64_t>(chip.memory_bandwidth.value() * to_seconds(compute) * 3 / 4));
  kernel.written = Bytes(0);
  EXPECT_EQ(time_of(kernel, chip).total, compute);
  chip.efficiency.matmul.overlap_loss = 1;
  const auto seconds = [&] { return to_seconds(time_of(kernel, chip).total); };
  EXPECT_NEAR(seconds(), to_seconds(compute) * 5 / 4, 1e-9);
  chip.efficiency.matmul.overlap_loss = 0.5;
  EXPECT_NEAR(seconds(), to_seconds(compute) * 4.5 / 4, 1e-9);
  kernel.read =
      Bytes(static_cast<std::int64_t>(chip.memory_bandwidth.value() * to_seconds(compute) * 4 / 3));
  EXPECT_NEAR(seconds(), to_seconds(compute) * 4.5 / 3, 1e-9);
}

TEST(ChipSpecTest, AShortInnerDimensionReachesHalfAtTheRamp) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul.inner_ramp = 1000;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(40us));
  chip.efficiency.matmul.peak_fraction = 0.5;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(80us));
}

TEST(ChipSpecTest, NarrowMatricesGetNarrowerTiles) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul.tile_m = 128;
  Kernel narrow = cube();
  narrow.m = 20;
  narrow.flops = Flops(2.0 * 20 * 1000 * 1000);  // 0.4 us
  // A tile of 32 rows, the next multiple of 16, for 20.
  EXPECT_EQ(time_of(narrow, chip).total, Duration(640'000));
  narrow.m = 32;
  narrow.flops = Flops(2.0 * 32 * 1000 * 1000);
  EXPECT_EQ(time_of(narrow, chip).total, Duration(640'000));
}

TEST(ChipSpecTest, FewTilesAreSplitOverIdleUnits) {
  ChipSpec chip = round_chip();
  chip.memory_bandwidth = 100000_GBps;  // partial sums cost next to nothing
  chip.efficiency.matmul.tile_m = 500;
  chip.efficiency.matmul.tile_n = 500;  // 4 tiles
  chip.efficiency.matmul.compute_units = 100;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(500us)) << "4 of 100 units work";
  chip.efficiency.matmul.least_split = 100;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(62'500'000)) << "k = 1000 in 8 parts of 125";
  chip.efficiency.matmul.least_split = 10;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(31'250'000)) << "16 parts: 64 of 100 work";
}

// 16 parts of 1000 x 1000 sums of 4 bytes, written and read: 128 MB, 128 us at 1 TB/s. Without the
// split, 500 us of arithmetic.
TEST(ChipSpecTest, ASplitPaysForItsPartialSumsAndHalfAStart) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul = {.tile_m = 500, .tile_n = 500, .compute_units = 100, .least_split = 60};
  chip.efficiency.matmul.start = 2us;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(67us))
      << "8 parts: 64 us of sums are longer than 62.5 of arithmetic";
}

TEST(ChipSpecTest, WhatASplitTakesOnTopMayBeGiven) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul = {.tile_m = 500, .tile_n = 500, .compute_units = 100, .least_split = 60};
  chip.efficiency.matmul.start = 2us;
  chip.efficiency.matmul.split_start = 5us;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(71us)) << "64 us, 2 and 5";
  chip.efficiency.matmul.split_start = 600us;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(502us)) << "then nothing is split";
}

TEST(ChipSpecTest, TheLibraryTakesTheTileThatIsFastest) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul = {.tile_m = 128, .tile_n = 256, .compute_units = 100};
  Kernel kernel = cube();
  kernel.m = kernel.n = 1024;
  kernel.flops = Flops(2.0 * 1024 * 1024 * 1000);
  // 32 tiles of 128 x 256 on 100 units: 65.536 us. 64 of 128 x 128, or 256 of 64 x 64 in three
  // waves, are faster.
  const Duration large = time_of(kernel, chip).total;
  EXPECT_NEAR(to_seconds(large), 65.536e-6, 2e-12);
  chip.efficiency.matmul.smaller_tiles = true;
  EXPECT_LT(time_of(kernel, chip).total, large / 2);
  const Duration smaller = time_of(kernel, chip).total;
  chip.efficiency.matmul.tile_overhead = 10;
  EXPECT_GT(time_of(kernel, chip).total, smaller) << "small tiles read more for each operation";
}

// One tile of 128 x 128 reads 2 x 128 x 1000 values of 2 bytes: 512 KB. Each of 100 units loads 1
// GB/s.
TEST(ChipSpecTest, OperandsOfATileArriveAtItsUnitsRate) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul = {.tile_m = 128, .tile_n = 128, .compute_units = 100};
  chip.efficiency.matmul.operand_bandwidth = Bandwidth(100e9);
  Kernel kernel = cube();
  kernel.m = kernel.n = 128;
  kernel.flops = Flops(2.0 * 128 * 128 * 1000);
  EXPECT_NEAR(to_seconds(time_of(kernel, chip).total), 512e-6, 2e-12);
  chip.efficiency.matmul.step_time = 16us;
  EXPECT_NEAR(to_seconds(time_of(kernel, chip).total), (512 + 250) * 1e-6, 2e-12)
      << "1000 / 64 steps of 16 us beside the loads";
  chip.efficiency.matmul.step_time = {};
  chip.communication.units = 100;
  EXPECT_NEAR(to_seconds(time_of(kernel, with_sm_margin(chip, 50)).total), 512e-6, 2e-12)
      << "units that communicate leave the others as fast as they were";
}

TEST(ChipSpecTest, RowsThatAreNoMultipleOf16BytesCostTheirFraction) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul.unaligned = 0.8;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(20us)) << "rows of 2000 bytes";
  Kernel odd = cube();
  odd.k = 1001;
  odd.flops = Flops(2.002e9);
  EXPECT_EQ(time_of(odd, chip).total, Duration(25'025'000));
}

TEST(ChipSpecTest, MatmulsMayHaveTheirOwnShareOfTheMemoryAndStart) {
  ChipSpec chip = round_chip();
  chip.efficiency.memory_ramp = 1_MiB;
  chip.launch_overhead = 3us;
  Kernel kernel = cube();
  kernel.read = Bytes(50'000'000);
  EXPECT_GT(time_of(kernel, chip).total, Duration(54us));
  chip.efficiency.matmul.memory_fraction = 0.5;
  chip.efficiency.matmul.start = 1us;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(101us)) << "and no ramp";
}

TEST(ChipSpecTest, QuantisingTakesAStartAndItsBytes) {
  ChipSpec chip = round_chip();
  chip.efficiency.memory_fraction = 0.5;
  chip.efficiency.matmul_of = {
      {.type = DataType::kFp8, .quantize_start = 4us, .quantize_bytes = 2.5}};
  EXPECT_EQ(time_to_quantize(1'000'000, DataType::kFp8, chip), Duration(9us));
  EXPECT_EQ(time_to_quantize(1'000'000, DataType::kBf16, chip), Duration(0us));
}

TEST(ChipSpecTest, AddingToAnAccumulatorCostsItsFraction) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul.accumulating = 0.5;
  EXPECT_EQ(time_of(cube(), chip).total, Duration(20us));
  Kernel gradient = cube();
  gradient.accumulates = true;
  EXPECT_EQ(time_of(gradient, chip).total, Duration(40us));
  chip.efficiency.matmul.accumulating = 0;
  EXPECT_EQ(check(chip).front().field, "efficiency.matmul.accumulating");
}

// A million sums of four bytes are read and written in 8 us, those of two bytes in 4 us.
TEST(ChipSpecTest, SumsMoveWhileNoUnitMultiplies) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul.exposed_accumulation = 0.5;
  Kernel gradient = cube();
  gradient.written = 4'000'000_B;
  EXPECT_EQ(time_of(gradient, chip).total, Duration(20us)) << "it adds nothing up";
  gradient.accumulates = true;
  EXPECT_NEAR(to_seconds(time_of(gradient, chip).total), 22e-6, 2e-12);
  gradient.written = 2'000'000_B;
  EXPECT_EQ(time_of(gradient, chip).total, Duration(20us)) << "as much as a result";
  chip.efficiency.matmul.exposed_accumulation = 1.5;
  EXPECT_EQ(check(chip).front().field, "efficiency.matmul.exposed_accumulation");
}

TEST(ChipSpecTest, ADataTypeMayHaveItsOwnMatmuls) {
  ChipSpec chip = round_chip();
  chip.efficiency.matmul_of = {{.type = DataType::kBf16, .peak_fraction = 0.5}};
  EXPECT_EQ(time_of(cube(), chip).total, Duration(40us));
  chip.efficiency.matmul_of = {};
  EXPECT_EQ(time_of(cube(), chip).total, Duration(20us));
}

TEST(ChipSpecTest, AttentionReachesHalfAtEachRamp) {
  ChipSpec chip = round_chip();
  Kernel kernel = cube();  // 1000 queries, 1000 keys, 8 blocks of 128 queries
  kernel.kind = KernelKind::kAttentionForward;
  kernel.k = 128;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(20us));
  chip.efficiency.attention_length_ramp = 1000;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(40us));
  chip.efficiency.attention_tile_ramp = 4;
  chip.efficiency.matmul.compute_units = 2;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(80us));
  chip.efficiency.attention_head_ramp = 128;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(80us)) << "heads of 128 are the measure";
  kernel.k = 64;  // 64/192 of its throughput where those of 128 have 128/256
  EXPECT_EQ(time_of(kernel, chip).total, Duration(120us));
}

// Heads of 128 use half of the columns of a unit of 256, heads of 384 three quarters of two passes.
TEST(ChipSpecTest, NarrowHeadsLeavePartOfAWideMatrixUnitIdle) {
  ChipSpec chip = round_chip();
  Kernel kernel = cube();
  kernel.kind = KernelKind::kAttentionForward;
  const auto time_with_heads_of = [&](std::int64_t head) {
    kernel.k = head;
    return time_of(kernel, chip).total;
  };
  EXPECT_EQ(time_with_heads_of(128), Duration(20us));
  chip.efficiency.attention_matrix_width = 256;
  EXPECT_EQ(time_with_heads_of(256), Duration(20us));
  EXPECT_EQ(time_with_heads_of(128), Duration(40us));
  EXPECT_EQ(time_with_heads_of(64), Duration(80us));
  EXPECT_NEAR(to_seconds(time_with_heads_of(384)), 20e-6 / 0.75, 1e-9);
}

// 100 TFLOP/s at 8 J a TFLOP are 800 W at the full clock; 100 W are left for them: a clock of 1/2.
TEST(ChipSpecTest, PowerLimitsTheClockOfArithmeticAlone) {
  ChipSpec chip = round_chip();
  chip.power = {.limit_watts = 150, .idle_watts = 50, .joules_per_teraflop = 8};
  EXPECT_EQ(time_of(cube(), chip).total, Duration(20us)) << "a short run";
  EXPECT_EQ(time_of(cube(), sustained(chip)).total, Duration(40us));
  EXPECT_EQ(sustained(chip).memory_bandwidth, chip.memory_bandwidth);
  Kernel attention = cube();
  attention.kind = KernelKind::kAttentionForward;
  chip.efficiency.attention_forward_fraction = 0.125;
  EXPECT_EQ(time_of(attention, chip).total, time_of(attention, sustained(chip)).total)
      << "busy an eighth of the time, it draws 100 W at the full clock";
}

// Units that wait for loads half of the time draw 400 W of those 800 at the full clock: the clock
// is the cube root of 1/4, and the caches follow it.
TEST(ChipSpecTest, LoadsFromCachesRunAtTheClockOfTheUnits) {
  ChipSpec chip = round_chip();
  chip.power = {.limit_watts = 150, .idle_watts = 50, .joules_per_teraflop = 8};
  chip.efficiency.matmul.operand_bandwidth = Bandwidth(100e12);
  EXPECT_EQ(time_of(cube(), chip).total, Duration(40us));
  EXPECT_NEAR(to_seconds(time_of(cube(), sustained(chip)).total), 40e-6 * std::cbrt(4.0), 2e-11);
  EXPECT_EQ(time_of(cube(), sustained(chip, false)).total, Duration(40us)) << "as in inference";
  // Without a limit of their rate, steps of a tile of 500 x 500 wait as long as its arithmetic
  // takes twice: 64 x 5e5 / 1e14 s.
  chip.efficiency.matmul = {.tile_m = 500, .tile_n = 500, .step_time = 640ns};
  EXPECT_NEAR(busy_share(chip.efficiency.matmul, DataType::kBf16, 100e12), 0.5, 1e-9);
}

// Half of the bits and twice the peak draw the same power, and reach the limit at the same clock.
TEST(ChipSpecTest, EnergyIsInProportionToTheBitsOfOperands) {
  ChipSpec chip = round_chip();
  chip.set_peak(DataType::kFp8, 200_TFLOPS);
  chip.power = {.limit_watts = 150, .idle_watts = 50, .joules_per_teraflop = 8};
  EXPECT_DOUBLE_EQ(sustained_clock(chip, DataType::kBf16, 1), 0.5);
  EXPECT_DOUBLE_EQ(sustained_clock(chip, DataType::kFp8, 1), 0.5);
  EXPECT_DOUBLE_EQ(sustained_clock(chip, DataType::kFp8, 0.5), 0.5 * std::cbrt(2.0));
  EXPECT_DOUBLE_EQ(sustained_clock(chip, DataType::kFp32, 1), 1);
  EXPECT_DOUBLE_EQ(sustained_clock(round_chip(), DataType::kBf16, 1), 1);
  chip.power->idle_watts = 150;
  EXPECT_EQ(check(chip).front().field, "power.limit_watts");
}

// At half of the clock an operation takes a quarter of the joules, so the cube's 2e9 FLOPs take 4
// mJ: 100 W for the 40 us that it then takes.
TEST(ChipSpecTest, TheJoulesOfAKernelFallWithTheSquareOfTheClock) {
  ChipSpec chip = round_chip();
  EXPECT_EQ(joules_of(cube(), chip), 0) << "no power is known";
  chip.power = {.limit_watts = 150, .idle_watts = 50, .joules_per_teraflop = 8};
  EXPECT_DOUBLE_EQ(joules_of(cube(), chip), 4e-3);
  EXPECT_DOUBLE_EQ(joules_of(cube(), chip) / to_seconds(time_of(cube(), sustained(chip)).total),
                   100);
  chip.power->limit_watts = 10'000;
  EXPECT_DOUBLE_EQ(joules_of(cube(), chip), 2e9 * 8e-12) << "at the full clock";
  Kernel sum = cube();
  sum.kind = KernelKind::kElementwise;
  EXPECT_DOUBLE_EQ(joules_of(sum, chip), 2e9 * 2 * 8e-12) << "in fp32";
}

// Expectations of the largest of n normal variates: Harter, "Expected Values of Normal Order
// Statistics", Biometrika 48 (1961), table 1.
TEST(ChipSpecTest, TheLargestOfManyNormalVariatesGrowsSlowly) {
  EXPECT_EQ(expected_largest_normal(1), 0);
  EXPECT_NEAR(expected_largest_normal(2), 0.56419, 0.05 * 0.56419);
  EXPECT_NEAR(expected_largest_normal(8), 1.42360, 0.01 * 1.42360);
  EXPECT_NEAR(expected_largest_normal(100), 2.50759, 0.01 * 2.50759);
  double before = 0;
  for (std::int64_t n = 2; n <= 1 << 20; n *= 2) {
    EXPECT_GT(expected_largest_normal(n), before) << n;
    before = expected_largest_normal(n);
  }
}

// At its limit a clock goes with the inverse cube root of the energy.
TEST(ChipSpecTest, AStepWaitsForTheChipThatTakesMostEnergy) {
  ChipSpec chip = round_chip();
  EXPECT_FALSE(slowest_of(1024, chip).power) << "chips without a limit are alike";
  chip.power = {.limit_watts = 150, .idle_watts = 50, .joules_per_teraflop = 8};
  EXPECT_EQ(slowest_of(1024, chip).power->joules_per_teraflop, 8) << "no spread";
  chip.power->energy_spread = 0.1;
  EXPECT_EQ(slowest_of(1, chip).power->joules_per_teraflop, 8);
  const ChipSpec slowest = slowest_of(1024, chip);
  EXPECT_DOUBLE_EQ(slowest.power->joules_per_teraflop,
                   8 * (1 + 0.1 * expected_largest_normal(1024)));
  EXPECT_DOUBLE_EQ(sustained_clock(slowest, DataType::kBf16, 1),
                   0.5 / std::cbrt(1 + 0.1 * expected_largest_normal(1024)));
}

// The units reach half of 1 TB/s, where the memory would give four fifths. Taking units away slows
// such a kernel; taking a little of the memory does not.
TEST(ChipSpecTest, KindsThatStayBehindTheMemoryAreBoundByTheirUnits) {
  ChipSpec chip = round_chip();
  chip.efficiency.memory_fraction = 0.8;
  chip.efficiency.elementwise_of = {{ElementwiseKind::kNorm, 0.5}};
  Kernel kernel{.name = "norm", .read = Bytes(4'000'000), .written = Bytes(4'000'000)};
  EXPECT_EQ(time_of(kernel, chip).total, Duration(10us)) << "plain";
  kernel.elementwise = ElementwiseKind::kNorm;
  const KernelTime time = time_of(kernel, chip);
  EXPECT_EQ(time.total, Duration(16us));
  EXPECT_EQ(slowed(time, {.compute_share = 0.2}), Duration(20us));
  EXPECT_EQ(slowed(time, {.memory_share = 0.2}), Duration(16us));
  EXPECT_EQ(name_of(ElementwiseKind::kRounding), "rounding");
  chip.efficiency.elementwise_of = {{ElementwiseKind::kNorm, 1.5}};
  const std::vector<Problem> expected{
      {"efficiency.elementwise_of[0].memory_fraction", "must be above 0 and at most 1, is 1.5"}};
  EXPECT_EQ(check(chip), expected);
}

// Attention of a library that the chip doesn't list is that of the entry without one; older ones
// are as slow as FlashAttention-2.
TEST(ChipSpecTest, AttentionOfTrainingIsThatOfItsLibrary) {
  using enum AttentionLibrary;
  Efficiency efficiency{.attention_forward_fraction = 0.5,
                        .attention_backward_fraction = 0.4,
                        .attention_length_ramp = 100};
  const auto forward = [&efficiency](std::optional<AttentionLibrary> library) {
    return efficiency.in_training(library).attention_forward_fraction;
  };
  EXPECT_EQ(forward(kFlash2), 0.5);
  efficiency.attention_of = {{kFlash2, 0.3, 0.2, 50.0}, {std::nullopt, 0.7, 0.6, std::nullopt}};
  EXPECT_EQ(forward(kFlash2), 0.3);
  EXPECT_EQ(forward(kFlash1), 0.3);
  EXPECT_EQ(forward(kTriton), 0.3);
  EXPECT_EQ(forward(kFlash3), 0.7);
  EXPECT_EQ(forward(std::nullopt), 0.7);
  EXPECT_EQ(efficiency.in_training(kFlash2).attention_backward_fraction, 0.2);
  EXPECT_EQ(efficiency.in_training(kFlash2).attention_length_ramp, 50);
  EXPECT_EQ(efficiency.in_training(kCudnn).attention_length_ramp, 100);
  ChipSpec chip = round_chip();
  chip.efficiency.attention_of = {{kFlash2, 0.3, 0.2, 0.0}, {kFlash2, 0.3, 0.2, 0.0}};
  const std::vector<Problem> expected{
      {"efficiency.attention_of[1].library", "is given twice: flash2"}};
  EXPECT_EQ(check(chip), expected);
}

// 20 of 100 units. 100 tiles are one wave of 100 units, and two waves of 80.
TEST(ChipSpecTest, UnitsThatAreLeftToCommunicationComputeNothing) {
  ChipSpec chip = round_chip();
  chip.communication.units = 100;
  chip.efficiency.elementwise_of = {{ElementwiseKind::kRope, 0.5}};
  EXPECT_EQ(time_of(cube(), with_sm_margin(chip, 0)).total, Duration(20us));
  EXPECT_EQ(time_of(cube(), with_sm_margin(chip, 20)).total, Duration(25us));
  Kernel kernel{.name = "rope", .read = Bytes(8'000'000)};
  EXPECT_EQ(time_of(kernel, with_sm_margin(chip, 20)).total, Duration(8us)) << "the memory's";
  kernel.elementwise = ElementwiseKind::kRope;
  EXPECT_EQ(time_of(kernel, with_sm_margin(chip, 20)).total, Duration(20us)) << "0.4 TB/s";
  chip.efficiency.matmul = {.tile_m = 100, .tile_n = 100, .compute_units = 100};
  EXPECT_EQ(time_of(cube(), chip).total, Duration(20us));
  EXPECT_EQ(time_of(cube(), with_sm_margin(chip, 20)).total, Duration(40us));
  EXPECT_EQ(with_sm_margin(chip, 20).efficiency.matmul.compute_units, 80);
}

TEST(ChipSpecTest, EachKindHasItsOwnFraction) {
  ChipSpec chip = round_chip();
  chip.efficiency.attention_forward_fraction = 0.5;
  chip.efficiency.attention_backward_fraction = 0.25;
  chip.efficiency.elementwise_fraction = 0.8;
  Kernel kernel = cube();
  kernel.kind = KernelKind::kAttentionForward;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(40us));
  kernel.kind = KernelKind::kAttentionBackward;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(80us));
  kernel.kind = KernelKind::kElementwise;
  EXPECT_EQ(time_of(kernel, chip).total, Duration(250us)) << "2e9 at 0.8 x 10 TFLOP/s, in fp32";
}

TEST(ChipSpecTest, ASmallKernelReachesHalfTheBandwidthAtTheRamp) {
  ChipSpec chip = round_chip();
  chip.efficiency.memory_ramp = 2_MiB;
  Kernel kernel;
  kernel.read = 2_MiB;
  EXPECT_EQ(time_of(kernel, chip).total, 4_MiB / 1000_GBps);
  chip.efficiency.memory_fraction = 0.5;
  EXPECT_EQ(time_of(kernel, chip).total, 4_MiB / 500_GBps);
}

TEST(ChipSpecTest, CommunicationSlowsEachSideByWhatItTakes) {
  const KernelTime time{.compute_s = 20e-6, .memory_s = 16e-6, .overhead = 1us, .total = 21us};
  EXPECT_EQ(slowed(time, {}), time.total);
  EXPECT_EQ(slowed(time, {.compute_share = 0.5}), Duration(41us));
  EXPECT_EQ(slowed(time, {.memory_share = 0.2}), Duration(21us)) << "16 / 0.8 hides behind 20";
  EXPECT_EQ(slowed(time, {.memory_share = 0.5}), Duration(33us));
}

TEST(ChipSpecTest, AcceptsAChipWithoutLosses) {
  EXPECT_TRUE(check(round_chip()).empty());
}

TEST(ChipSpecTest, ReportsEveryProblemAtOnce) {
  ChipSpec chip = round_chip();
  chip.memory_bandwidth = Bandwidth(0);
  chip.efficiency.memory_fraction = 1.5;
  chip.efficiency.matmul.compute_units = 0;
  chip.communication.fixed = {.compute_share = 1};
  chip.efficiency.elementwise_fraction = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Problem> problems = check(chip);
  const std::vector<Problem> expected{
      {"memory_bandwidth", "must be positive, is 0"},
      {"efficiency.matmul.compute_units", "must be at least 1, is 0"},
      {"efficiency.elementwise_fraction", "must be above 0 and at most 1, is nan"},
      {"efficiency.memory_fraction", "must be above 0 and at most 1, is 1.5"},
      {"communication.compute_share", "must be at least 0 and below 1, is 1"},
  };
  EXPECT_EQ(problems, expected);
}

TEST(ChipSpecTest, LimitsAreAsWritten) {
  ChipSpec chip = round_chip();
  chip.efficiency.memory_fraction = 1;
  chip.communication.fixed = {.memory_share = 0.999};
  chip.fixed_memory = chip.memory_capacity;
  EXPECT_TRUE(check(chip).empty());
  chip.fixed_memory += 1_B;
  ASSERT_EQ(check(chip).size(), 1U);
  EXPECT_EQ(check(chip).front().field, "fixed_memory");
}

TEST(ChipSpecTest, NeedsAnFp32PeakForElementwiseKernels) {
  ChipSpec chip = round_chip();
  chip.peak = {{DataType::kBf16, 100_TFLOPS}};
  ASSERT_EQ(check(chip).size(), 1U);
  EXPECT_EQ(check(chip).front().field, "peak");
}

TEST(ChipSpecTest, NamesEveryTypeAndKindThatIsGivenTwice) {
  ChipSpec chip = round_chip();
  chip.peak.push_back({DataType::kBf16, 50_TFLOPS});
  chip.efficiency.matmul.type = DataType::kFp8;
  chip.efficiency.matmul_of.resize(2, {.type = DataType::kFp8});
  chip.efficiency.elementwise_of.resize(2, {ElementwiseKind::kRope, 0.5});
  chip.communication.reduction.resize(2, {DataType::kFp32, 1_GBps});
  const std::vector<Problem> expected{{"efficiency.matmul.type", "is for matmul_of only"},
                                      {"peak[2].type", "is given twice: bf16"},
                                      {"efficiency.matmul_of[1].type", "is given twice: fp8"},
                                      {"efficiency.elementwise_of[1].kind", "is given twice: rope"},
                                      {"communication.reduction[1].type", "is given twice: fp32"}};
  EXPECT_EQ(check(chip), expected);
}

}  // namespace
}  // namespace stepsim
