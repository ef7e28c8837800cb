#include "experiment/energy.h"

#include <gtest/gtest.h>

#include "tests/support/hand_made_run.h"

namespace stepsim {
namespace {

// 100 W for arithmetic, beside 50 W.
HandMadeRun run_with_power(double joules_per_teraflop) {
  HandMadeRun run = hand_made_run();
  run.experiment.cluster.chip.power =
      PowerLimit{.limit_watts = 150, .idle_watts = 50, .joules_per_teraflop = joules_per_teraflop};
  return run;
}

// An elementwise kernel has 300 FLOPs in fp32: twice the joules of 16 bits. Two kernels a run, one
// run on each of the first two ranks, three on each of the others: 16 kernels a step.
TEST(EnergyTest, AStepTakesIdleWattsAndTheArithmeticOfEveryKernel) {
  const HandMadeRun run = run_with_power(1e-3);
  const auto energy = energy_of_step(run.experiment, run.cluster, run.graph, run.result);
  ASSERT_TRUE(energy);
  const double arithmetic = 16 * 300 * 2 * 1e-3 * 1e-12;
  const double idle = 4 * 50 * 5'001'000e-12;
  EXPECT_DOUBLE_EQ(energy->joules, idle + arithmetic);
  EXPECT_DOUBLE_EQ(energy->joules_per_token, energy->joules / 40);
  EXPECT_DOUBLE_EQ(energy->mean_watts_per_chip, energy->joules / (4 * 5'001'000e-12));
  EXPECT_EQ(energy->idle_watts_per_chip, 50);
}

TEST(EnergyTest, NoKernelDrawsMoreThanTheLimit) {
  const HandMadeRun run = run_with_power(1e12);
  const auto energy = energy_of_step(run.experiment, run.cluster, run.graph, run.result);
  ASSERT_TRUE(energy);
  EXPECT_DOUBLE_EQ(energy->peak_watts_per_chip, 150);
  EXPECT_LE(energy->mean_watts_per_chip, 150);
}

TEST(EnergyTest, NothingIsAssumedOfAChipThatDoesNotSayItsPower) {
  const HandMadeRun silent = hand_made_run();
  EXPECT_FALSE(energy_of_step(silent.experiment, silent.cluster, silent.graph, silent.result));
  const HandMadeRun rates = run_with_power(0);  // what power costs is in its rates
  EXPECT_FALSE(energy_of_step(rates.experiment, rates.cluster, rates.graph, rates.result));
}

// What is drawn over time adds up to the joules of the rank.
TEST(EnergyTest, WattsOverTimeAddUpToTheJoules) {
  const HandMadeRun run = run_with_power(1e-3);
  const auto kernels = energy_of_kernels(run.experiment, run.cluster, run.graph);
  ASSERT_TRUE(kernels);
  const auto samples = watts_over_time(run.graph, run.result.timelines[2], *kernels);
  ASSERT_GT(samples.size(), 2U);
  EXPECT_EQ(samples.front().at, Time());
  EXPECT_EQ(samples.front().watts, 50);
  EXPECT_EQ(samples.back().watts, 50);
  double joules = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Time until = i + 1 < samples.size() ? samples[i + 1].at : run.result.end;
    joules += samples[i].watts * to_seconds(until - samples[i].at);
  }
  EXPECT_NEAR(joules, 50 * 5'001'000e-12 + 6 * 300 * 2 * 1e-15, 1e-18);
}

}  // namespace
}  // namespace stepsim
