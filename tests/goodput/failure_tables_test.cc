// Tables of failures: the catalog's, the checks, and the jobs that are simulated for them.

#include <gtest/gtest.h>

#include "experiment/build_cluster.h"
#include "goodput/steps/trained_job.h"
#include "proto/catalog/catalog.h"
#include "proto/catalog/load_failures.h"
#include "proto/failures.pb.h"
#include "proto/load_experiment.h"
#include "proto/messages/read_fields.h"
#include "tests/support/problems.h"

namespace stepsim {
namespace {

TEST(FailureTablesTest, EveryFieldOfTheMessageHasARow) {
  EXPECT_TRUE(unmatched_fields(*file::FailureTable::descriptor(), failure_fields()).empty());
}

TEST(FailureTablesTest, LlamasTableHasItsInterruptions) {
  const FailureTable table = load_failures("llama3");
  double count = 0;
  double per_day = 0;
  for (const FailureClass& failure : table.classes) {
    count += *failure.count;
    const double units = failure.per == FailureUnit::kChip   ? 16384
                         : failure.per == FailureUnit::kNode ? 2048
                                                             : 1;
    per_day += units * failures_per_day(failure, table.observed, 256, 512);
  }
  EXPECT_EQ(count, 419);
  // 3.093 h between failures of the whole job.
  EXPECT_NEAR(24 / per_day, 3.0930787589, 1e-9);
}

// Every table that has a published figure is within 3 points of it, or above where it is a least
// one.
TEST(FailureTablesTest, PublishedGoodputIsPredictedWithinThreePoints) {
  int figures = 0;
  for (const std::string& name : list(CatalogKind::kFailures)) {
    const FailureTable table = load_failures(name);
    if (!table.published) continue;
    const Experiment experiment = load_experiment({.experiment = table.published->experiment});
    const TrainedJob trained = train_job(experiment, cluster_for_steps(experiment), table,
                                         {.length = {.days = table.published->days}});
    const RunSetup setup = plan_runs(table, trained.job, trained.times);
    const GoodputResult result = run_many(setup, {.runs = 100});
    EXPECT_NEAR(result.goodput, table.published->goodput, 0.03) << name;
    EXPECT_TRUE(!table.published->at_least || result.goodput > table.published->goodput) << name;
    ++figures;
  }
  EXPECT_EQ(figures, 2);
}

// 405.85e9 parameters x (12 bytes of state + 2 of weights).
TEST(FailureTablesTest, ACheckpointHoldsParametersAndStateOnce) {
  const Experiment experiment = load_experiment({.experiment = "llama3-405b-dgx-h100-16384"});
  EXPECT_NEAR(static_cast<double>(checkpoint_bytes(experiment).value()), 405.85e9 * 14, 1e10);
}

Experiment small_job() {
  return load_experiment({.model = "llama3-8b",
                          .cluster = "dgx-h100-32",
                          .plan = "tp=8,dp=4,global-batch=32,sequence=4096"});
}

// A replica is a node here. With 3 of 4 a step has 3/4 of the sequences in nearly the same time:
// two replicas exchange a quarter of the gradients of a rank less than four.
TEST(FailureTablesTest, FewerReplicasAndSlowNodesAreSimulated) {
  FailureTable table = load_failures("rsc1");
  table.classes.push_back(
      {.name = "slow", .rate = 1, .effect = FailureEffect::kSlow, .slowdown = 2});
  const Experiment experiment = small_job();
  const TrainedJob trained = train_job(experiment, cluster_for_steps(experiment), table,
                                       {.length = {.days = 10}, .shrink = 2});
  EXPECT_EQ(trained.job.least_replicas, 2);
  ASSERT_EQ(trained.smaller.size(), 2U);
  EXPECT_NEAR(trained.smaller[0].slowdown, 4.0 / 3, 0.05);
  EXPECT_NEAR(trained.smaller[1].slowdown, 2, 0.15);
  ASSERT_EQ(trained.job.slow_slowdown.size(), 2U);
  EXPECT_EQ(trained.job.slow_slowdown[0], 1);
  EXPECT_GT(trained.job.slow_slowdown[1], 1.5);
  EXPECT_LE(trained.job.slow_slowdown[1], 2);
}

// 8.03e9 x 14 bytes on 32 chips are 3.5 GB each: 0.14 s at 25 GB/s to the host; of a node 28
// GB, 1.4 s at 20 GB/s to the storage.
TEST(FailureTablesTest, CheckpointsTakeTheirSizeOverTheBandwidths) {
  FailureTable table = load_failures("rsc1");
  table.checkpoint = {
      .async = false, .host_bandwidth = Bandwidth(25e9), .node_storage_bandwidth = Bandwidth(20e9)};
  const Experiment experiment = small_job();
  const Cluster cluster = cluster_for_steps(experiment);
  const auto times = [&] {
    return train_job(experiment, cluster, table, {.length = {.days = 10}}).times;
  };
  const double chip = 8.03e9 * 14 / 32;
  const CheckpointTimes both = times();
  EXPECT_NEAR(static_cast<double>(both.storage_stall), 1e6 * (chip / 25e9 + 8 * chip / 20e9), 5e3);
  EXPECT_EQ(both.storage_flush, 0);
  table.checkpoint.async = true;
  const CheckpointTimes later = times();
  EXPECT_EQ(later.storage_stall, 0);  // the copy ends before the step does
  EXPECT_EQ(later.storage_flush, both.storage_stall);
  table.checkpoint.shares_network = true;
  const CheckpointTimes shared = times();
  EXPECT_GT(shared.storage_stall, 0);
  EXPECT_LT(shared.storage_stall, both.storage_stall);
}

// A slow chip is one straggler, a slow node eight of them: all wait for either alike, but the
// exchanges of a tensor group hide none of it.
TEST(FailureTablesTest, ASlowUnitIsAsLargeAsItSays) {
  FailureTable table = load_failures("rsc1");
  const FailureClass slow{.name = "slow",
                          .rate = 1,
                          .loses = FailureScope::kNothing,
                          .effect = FailureEffect::kSlow,
                          .slowdown = 1.5};
  table.classes = {slow, slow, slow};
  table.classes[1].per = FailureUnit::kNode;
  table.classes[2].per = FailureUnit::kJob;
  const Experiment experiment = small_job();
  const TrainedJob trained =
      train_job(experiment, cluster_for_steps(experiment), table, {.length = {.days = 10}});
  const std::vector<double>& by_class = trained.job.slow_slowdown;
  EXPECT_GT(by_class[0], 1.2);
  EXPECT_GE(by_class[1], by_class[0]);
  EXPECT_GE(by_class[2], by_class[1]);
  EXPECT_LE(by_class[2], 1.5);
}

// 3.5 GB of each chip beside a step: hidden at 25 GB/s. At 1 GB/s the step ends after the copy and
// what follows it, the optimizer.
TEST(FailureTablesTest, TheCopyToTheHostIsExposedWhereTheStepIsShorter) {
  FailureTable table = load_failures("rsc1");
  table.checkpoint = {.to = {CheckpointPlace::kHost, CheckpointPlace::kStorage}, .async = true};
  const Experiment experiment = small_job();
  const Cluster cluster = cluster_for_steps(experiment);
  const auto trained = [&] {
    return train_job(experiment, cluster, table, {.length = {.days = 10}});
  };
  table.checkpoint.host_bandwidth = Bandwidth(25e9);
  EXPECT_EQ(trained().times.copy_stall, 0);
  table.checkpoint.host_bandwidth = Bandwidth(1e9);
  const TrainedJob slow = trained();
  const double copy = 8.03e9 * 14 / 32 / 1e9;
  const double stall = static_cast<double>(slow.times.copy_stall) / kTicksPerSecond;
  EXPECT_GT(stall, copy - to_seconds(slow.step));
  EXPECT_LT(stall, copy - to_seconds(slow.step) + 0.1);
}

// Two pods, a stage in each. Gradients stay in their pod, until a node stands in the other one.
TEST(FailureTablesTest, ASpareOfAnotherPodIsSimulated) {
  const Experiment experiment =
      load_experiment({.model = "llama3-8b",
                       .cluster = "dgx-h100-512",
                       .plan = "tp=8,dp=32,pp=2,microbatch=1,global-batch=64,sequence=1024"});
  const Cluster cluster = cluster_for_steps(experiment);
  FailureTable table = load_failures("rsc1");
  table.spares = 2;
  const TrainedJob trained = train_job(experiment, cluster, table, {.length = {.days = 10}});
  EXPECT_EQ(trained.job.spare_groups, 2);
  EXPECT_GT(trained.job.far_slowdown, 1);  // trips to another pod
  table.spares = 0;
  EXPECT_EQ(train_job(experiment, cluster, table, {.length = {.days = 10}}).job.far_slowdown, 1);
}

TEST(FailureTablesTest, ImpossiblePlansAreRefusedWithAllProblems) {
  FailureTable table = load_failures("rsc1");
  JobShape job{.work = kTicksPerDay, .step = kTicksPerSecond, .chips = 1024, .chips_per_node = 8};
  table.checkpoint.every = std::chrono::hours(48);
  table.checkpoint.storage_every = std::chrono::hours(1);
  table.classes[0].rate = 1e6;
  try {
    plan_runs(table, job, {});
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 3U);
    EXPECT_EQ(error.problems()[0].field, "--checkpoint every");
    EXPECT_EQ(error.problems()[1].field, "--checkpoint storage-every");
    EXPECT_EQ(error.problems()[2].field, "--failures");
  }
}

TEST(FailureTablesTest, ATableThatContradictsItselfIsRefused) {
  FailureTable table{.classes = {{.name = "a", .count = 1, .rate = 1},
                                 {.name = "a"},
                                 {.name = "c",
                                  .rate = 1,
                                  .loses = FailureScope::kNothing,
                                  .effect = FailureEffect::kSlow,
                                  .repair = std::chrono::hours(1)}}};
  EXPECT_EQ(check(table).size(), 6U);
  EXPECT_EQ(check(FailureTable{}).size(), 1U);
}

}  // namespace
}  // namespace stepsim
