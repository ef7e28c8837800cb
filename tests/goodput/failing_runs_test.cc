// Runs with failures against closed forms: within three standard errors, or to the tick.

#include <gtest/gtest.h>

#include <cmath>

#include "goodput/best_interval.h"
#include "goodput/checkpoint_cycle.h"
#include "goodput/goodput.h"

namespace stepsim {
namespace {

constexpr Ticks kSecond = kTicksPerSecond;

Ticks part(const TrainingResult& run, RunPart part) {
  return run.parts[static_cast<std::size_t>(part)];
}

RunSetup one_node(double interval, double mean, double restart, double checkpoint) {
  const auto ticks = [](double seconds) { return std::llround(seconds * kTicksPerSecond); };
  RunSetup setup{.work = 40 * ticks(interval), .restart = ticks(restart)};
  setup.classes.push_back({.loses = FailureScope::kNothing, .failures_per_day = 86400 / mean});
  setup.checkpoint = {.interval = ticks(interval), .storage_stall = ticks(checkpoint)};
  return setup;
}

TEST(FailingRunsTest, WithoutFailuresARunIsItsWorkAndItsCheckpoints) {
  RunSetup setup{.work = 1000 * kSecond};
  setup.checkpoint = {.interval = 100 * kSecond, .storage_stall = 5 * kSecond};
  const TrainingResult run = simulate_training(setup, {});
  EXPECT_EQ(run.length, 1050 * kSecond);
  EXPECT_EQ(part(run, RunPart::kProductive), 1000 * kSecond);
  EXPECT_EQ(part(run, RunPart::kCheckpoint), 50 * kSecond);
  // The last piece of 950 is a half, and is saved as well: 10 checkpoints.
  setup.work = 950 * kSecond;
  EXPECT_EQ(simulate_training(setup, {}).length, 1000 * kSecond);
}

// T = (W / tau) M e^(R/M) (e^((tau + C)/M) - 1).
TEST(FailingRunsTest, ARunTakesWhatTheClosedFormSays) {
  struct Case {
    double interval, mean, restart, checkpoint;
  };
  for (const Case& c : {Case{1116.344, 11136, 300, 60}, Case{444.977, 3600, 120, 30},
                        Case{1099.980, 1800, 900, 600}}) {
    const GoodputResult result =
        run_many(one_node(c.interval, c.mean, c.restart, c.checkpoint), {.runs = 4000});
    const double exact = 40 * c.mean * std::exp(c.restart / c.mean) *
                         std::expm1((c.interval + c.checkpoint) / c.mean) / 86400;
    EXPECT_NEAR(result.mean_days, exact, 3 * result.standard_error_days) << c.mean;
  }
}

TEST(FailingRunsTest, TheGoodputAtTheBestIntervalIsThatOfTheClosedForm) {
  const GoodputResult result = run_many(one_node(1116.344, 11136, 300, 60), {.runs = 20000});
  const double error = 3 * result.standard_error_days / result.mean_days;
  EXPECT_NEAR(result.goodput, 0.875838, error);
}

// M (1 + W0(-e^-(1 + C / M))).
TEST(FailingRunsTest, TheBestIntervalIsExact) {
  const auto seconds = [](double stall, double mean) {
    return static_cast<double>(best_interval(std::llround(stall * 1e6), std::llround(mean * 1e6))) /
           1e6;
  };
  EXPECT_NEAR(seconds(60, 11136), 1116.344, 5e-4);
  EXPECT_NEAR(seconds(300, 11136), 2388.869, 5e-4);
  EXPECT_NEAR(seconds(30, 3600), 444.977, 5e-4);
  EXPECT_NEAR(seconds(600, 1800), 1099.980, 5e-4);
  EXPECT_EQ(best_interval(0, kSecond), 0);
  // Young's sqrt(2 C M) is right where C is nothing against M.
  EXPECT_NEAR(static_cast<double>(best_interval(2, 1'000'000'000'000'000)),
              std::sqrt(2.0 * 2 * 1e15), 50);
}

// Erlang's loss with s + 1 servers: 128 nodes, 0.832 failures a day, a day of repair.
TEST(FailingRunsTest, SparesGiveTheAvailabilityOfBirthAndDeath) {
  const double exact[] = {0.545852, 0.841095, 0.957791};
  for (std::int64_t spares = 0; spares < 3; ++spares) {
    RunSetup setup{.work = 400 * kTicksPerDay, .nodes = 128, .spares = spares};
    setup.classes.push_back(
        {.units = 128, .failures_per_day = 6.5e-3, .repair = kTicksPerDay, .nodes_lost = 1});
    setup.checkpoint = {.interval = kSecond};
    const GoodputResult result = run_many(setup, {.runs = 200});
    const double waits = result.parts_days[static_cast<std::size_t>(RunPart::kRepair)];
    EXPECT_NEAR(1 - waits / result.mean_days, exact[spares], 0.005) << spares;
  }
}

TEST(FailingRunsTest, WeibullFailuresKeepTheirMean) {
  for (const double shape : {0.7, 1.0, 2.0}) {
    RunSetup setup{.work = 4000 * kTicksPerDay};
    setup.classes.push_back({.loses = FailureScope::kNothing,
                             .times = FailureTimes::kWeibull,
                             .units = 10,
                             .failures_per_day = 0.05,
                             .shape = shape});
    setup.checkpoint = {.interval = kSecond};
    // 10 units x 4000 days x 0.05 = 2000 failures. Renewal theory: a unit that begins new has
    // (variance / mean^2 - 1) / 2 more: 0.56, 0 and -0.36 of each of the 10 units.
    const double more[] = {0.565, 0, -0.363};
    const double expected = 2000 + 10 * more[shape < 1 ? 0 : shape > 1 ? 2 : 1];
    const double failures = run_many(setup, {.runs = 100}).failures;
    EXPECT_NEAR(failures, expected, 3 * std::sqrt(2000.0 * 2.2 / 100)) << shape;
  }
}

// 100 units of which 10 cause half of 1 failure a day. Each lemon is out after 2 failures, so the
// whole run sees 20 of them, and 90 + 10 sound units go on at 0.5 / 90 a day each.
TEST(FailingRunsTest, LemonsFailOftenAndAreTakenOut) {
  RunSetup setup{.work = 2000 * kTicksPerDay};
  setup.classes.push_back({.loses = FailureScope::kNothing,
                           .times = FailureTimes::kLemons,
                           .units = 100,
                           .failures_per_day = 0.01,
                           .lemon_share = 0.1,
                           .lemon_failures = 0.5,
                           .lemon_limit = 2});
  setup.checkpoint = {.interval = kSecond};
  // Lemons last 2 / 0.05 = 40 days on average; until then their places have no sound unit.
  const double expected = 20 + 2000 * 100 * (0.5 / 90) - 10 * 40 * (0.5 / 90);
  EXPECT_NEAR(run_many(setup, {.runs = 100}).failures, expected, 3 * std::sqrt(1130.0 / 100));
}

// A chip is slow for an hour, now and then, and cools down: the job loses half of that hour and
// never restarts.
TEST(FailingRunsTest, WhatLosesNothingRecoversByItself) {
  RunSetup setup{.work = 1000 * kTicksPerDay, .restart = 300 * kSecond};
  setup.classes.push_back({.effect = FailureEffect::kSlow,
                           .loses = FailureScope::kNothing,
                           .failures_per_day = 0.01,
                           .detection = 3600 * kSecond,
                           .slowed = Pace::slower_by(2)});
  setup.checkpoint = {.interval = 1000 * kTicksPerDay};
  const TrainingResult run = simulate_training(setup, {});
  EXPECT_EQ(run.restarts, 0);
  EXPECT_GT(run.failures[0], 0);
  // Episodes that overlap count once, and the last one may not be over.
  const Ticks most = run.failures[0] * 1800 * kSecond;
  EXPECT_LE(part(run, RunPart::kDegraded), most + run.failures[0]);
  EXPECT_GT(part(run, RunPart::kDegraded), most * 9 / 10);
}

// Two groups of 8 nodes with a spare each, repairs that never end. The first failure of a group
// takes its spare, the second one the other group's, from when on the job is slow; the third stops
// it for good.
TEST(FailingRunsTest, ASpareOfAnotherGroupSlowsTheJob) {
  RunSetup setup{.work = 100 * kTicksPerDay,
                 .nodes = 16,
                 .spares = 2,
                 .groups = 2,
                 .far = Pace::slower_by(1.5)};
  setup.classes.push_back(
      {.units = 16, .failures_per_day = 0.001, .repair = 1000 * kTicksPerDay, .nodes_lost = 1});
  setup.checkpoint = {.interval = kSecond};
  int far = 0;
  int near = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const TrainingResult run = simulate_training(setup, {.seed = seed});
    const Ticks degraded = part(run, RunPart::kDegraded);
    if (run.failures[0] < 2) {
      EXPECT_EQ(degraded, 0) << seed;
    } else if (run.failures[0] == 2) {
      degraded > 0 ? ++far : ++near;
    }
  }
  // The second failure hits the group of the first one with probability 7.9 / 16.
  EXPECT_GT(far, 10);
  EXPECT_GT(near, 10);
  EXPECT_NEAR(far, near, 4 * std::sqrt(far + near));
  setup.groups = 1;
  EXPECT_EQ(part(simulate_training(setup, {.seed = 3}), RunPart::kDegraded), 0);
}

// Everything at once.
RunSetup busy_setup() {
  RunSetup setup{.work = 20 * kTicksPerDay,
                 .nodes = 64,
                 .spares = 2,
                 .replicas = 8,
                 .least_replicas = 6,
                 .paces = {Pace{}, Pace::slower_by(1.15), Pace::slower_by(1.34)},
                 .restart = 300 * kSecond,
                 .maintenance_every = 3 * kTicksPerDay,
                 .maintenance_time = 3600 * kSecond};
  setup.classes = {
      {.units = 512,
       .failures_per_day = 0.004,
       .detection = 600 * kSecond,
       .repair = 40'000 * kSecond,
       .nodes_lost = 1},
      {.loses = FailureScope::kNothing, .failures_per_day = 1, .detection = 60 * kSecond},
      {.loses = FailureScope::kLeaf,
       .units = 8,
       .failures_per_day = 0.02,
       .repair = 20'000 * kSecond,
       .nodes_lost = 8},
      {.effect = FailureEffect::kSlow,
       .units = 64,
       .failures_per_day = 0.01,
       .detection = 30'000 * kSecond,
       .repair = 40'000 * kSecond,
       .nodes_lost = 1,
       .slowed = Pace::slower_by(1.2)},
      {.effect = FailureEffect::kSilent,
       .units = 512,
       .failures_per_day = 0.001,
       .detection = 50'000 * kSecond,
       .repair = 40'000 * kSecond,
       .nodes_lost = 1},
      {.times = FailureTimes::kWeibull,
       .units = 64,
       .failures_per_day = 0.01,
       .shape = 0.7,
       .repair = 10'000 * kSecond,
       .nodes_lost = 1}};
  setup.checkpoint = {.interval = 600 * kSecond,
                      .per_storage = 4,
                      .copy_stall = 2 * kSecond,
                      .copy_flush = 20 * kSecond,
                      .storage_stall = 5 * kSecond,
                      .storage_flush = 300 * kSecond,
                      .has = {true, true, true},
                      .load = {5 * kSecond, 20 * kSecond, 100 * kSecond}};
  return setup;
}

TEST(FailingRunsTest, ThePartsOfEveryRunAddUpToItsLength) {
  const RunSetup setup = busy_setup();
  for (std::uint64_t i = 0; i < 200; ++i) {
    const TrainingResult run = simulate_training(setup, {.seed = 3, .run = i}, true);
    Ticks sum = 0;
    for (const Ticks each : run.parts) {
      EXPECT_GE(each, -1000);  // paces round to a tick
      sum += each;
    }
    EXPECT_EQ(sum, run.length);
    EXPECT_EQ(part(run, RunPart::kProductive), setup.work);
    Ticks end = 0;
    for (const RunSpan& span : run.spans) {
      EXPECT_EQ(span.begin, end);
      end = span.end;
    }
    EXPECT_EQ(end, run.length);
  }
}

TEST(FailingRunsTest, ASeedGivesTheSameRunsAndAnotherSeedOthers) {
  const RunSetup setup = busy_setup();
  EXPECT_EQ(simulate_training(setup, {1, 5}).length, simulate_training(setup, {1, 5}).length);
  EXPECT_NE(simulate_training(setup, {1, 5}).length, simulate_training(setup, {2, 5}).length);
  EXPECT_NE(simulate_training(setup, {1, 5}).length, simulate_training(setup, {1, 6}).length);
}

TEST(FailingRunsTest, MoreSparesFasterRepairAndFewerFailuresAreNeverWorse) {
  const RunSetup setup = busy_setup();
  const GoodputOptions options{.runs = 200};
  const double days = run_many(setup, options).mean_days;
  RunSetup better = setup;
  better.spares = 30;
  EXPECT_LT(run_many(better, options).mean_days, days);
  better = setup;
  for (ClassSetup& each : better.classes) each.repair /= 10;
  EXPECT_LT(run_many(better, options).mean_days, days);
  for (const ClassSensitivity& each : class_sensitivity(setup, options)) {
    EXPECT_LT(each.half_days, each.twice_days) << each.of;
  }
}

TEST(FailingRunsTest, AWatchdogCostsItsTimeForEachFailure) {
  RunSetup setup = one_node(1000, 1e6, 0, 0);
  setup.work = 10'000'000 * kSecond;
  const TrainingResult at_once = simulate_training(setup, {});
  setup.classes[0].detection = 10 * kSecond;
  const TrainingResult later = simulate_training(setup, {});
  EXPECT_EQ(part(at_once, RunPart::kRestart), 0);
  EXPECT_EQ(part(later, RunPart::kRestart), later.failures[0] * 10 * kSecond);
}

TEST(FailingRunsTest, ARunThatNeverRestartsIsGivenUp) {
  RunSetup setup = one_node(1000, 1, 100, 0);
  EXPECT_THROW(simulate_training(setup, {}), RunStuck);
}

// ---- checkpoints ----

//   0 ----- 100 c 102 ----- 202 c s 209 ----- 309 c 311 ...: copies take 2 s, every second one goes
//   to storage, 5 s.
TEST(CheckpointCycleTest, CountsWorkAndStallsAtEveryInstant) {
  const CheckpointCosts costs{.interval = 100 * kSecond,
                              .per_storage = 2,
                              .copy_stall = 2 * kSecond,
                              .storage_stall = 5 * kSecond,
                              .storage_flush = 50 * kSecond,
                              .has = {true, false, true}};
  const CheckpointCycle cycle(costs, Pace{}, 1000 * kSecond);
  const auto work = [&cycle](std::int64_t seconds) {
    return cycle.work_at(cycle.at(seconds * kSecond)) / kSecond;
  };
  EXPECT_EQ(work(99), 99);
  EXPECT_EQ(work(100), 100);
  EXPECT_EQ(work(102), 100);
  EXPECT_EQ(work(103), 101);
  EXPECT_EQ(work(202), 200);
  EXPECT_EQ(work(209), 200);
  EXPECT_EQ(work(210), 201);
  EXPECT_EQ(cycle.copied_at(101 * kSecond), 0);
  EXPECT_EQ(cycle.copied_at(102 * kSecond), 100 * kSecond);
  EXPECT_EQ(cycle.stored_at(258 * kSecond), 0);
  EXPECT_EQ(cycle.stored_at(259 * kSecond), 200 * kSecond);
  // Five rounds of 209, the last of which is waited for.
  EXPECT_EQ(cycle.length(), (5 * 209 + 50) * kSecond);
  for (std::int64_t second = 0; second < 900; ++second) {
    const CyclePoint point = cycle.at(second * kSecond);
    EXPECT_EQ(cycle.elapsed_at(point), second * kSecond);
  }
}

}  // namespace
}  // namespace stepsim
