// State and activations on the host: compares bytes, memory and time with the plan.

#include "schedules/lowering/stages/offload.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/pipeline/published/published_schedule.h"
#include "schedules/plan/axis.h"
#include "sim/hardware/hosts.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr auto kOptimizerState = static_cast<std::size_t>(MemoryCategory::kOptimizer);
constexpr auto kActivations = static_cast<std::size_t>(MemoryCategory::kActivations);

ParallelPlan plan_of(std::int64_t dp, std::int64_t pp, int zero) {
  ParallelPlan plan;
  plan.mesh.dp = dp;
  plan.mesh.pp = pp;
  plan.state.zero = zero;
  plan.batch.global_batch = dp * 4;
  plan.batch.sequence = 256;
  if (zero < 3) plan.messages.gradient_bucket_parameters = 1'000'000;
  return plan;
}

Cluster with_host(int chips, Bandwidth link = 20_GBps) {
  Cluster cluster = one_node(chips, 100_GBps);
  cluster.hosts = add_hosts({.link_bandwidth = link,
                             .chips = chips,
                             .memory_bandwidth = Bandwidth(40 * link.value()),
                             .memory_capacity = 100_GB},
                            cluster.places, cluster.fabric);
  return cluster;
}

SimulationResult run(const ParallelPlan& plan, const Cluster& cluster,
                     const ModelSpec& model = small_model()) {
  for (const Problem& problem : check(plan, model, cluster.places)) {
    ADD_FAILURE() << problem.field << problem.message;
  }
  const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
  return simulate(graph, cluster, {});  // throws if the host's bytes are not the plan's
}

std::int64_t host_bytes(const SimulationResult& result) {
  return result.bytes_by_axis[static_cast<std::size_t>(Axis::kHost)].value();
}

std::int64_t of_category(const SimulationResult& result, std::size_t category) {
  return result.memory_peaks[0].by_category[category].value();
}

TEST(OffloadTest, StateStreamsThroughTheChip) {
  const std::int64_t parameters = parameter_count(small_model());
  for (const int zero : {0, 1, 2, 3}) {
    ParallelPlan plan = plan_of(2, 1, zero);
    const SimulationResult there = run(plan, with_host(2));
    plan.offload.optimizer = true;
    const SimulationResult away = run(plan, with_host(2));
    const std::int64_t updated = zero == 0 ? 2 * parameters : parameters;
    EXPECT_EQ(host_bytes(away), updated * 2 * 12) << zero;
    EXPECT_EQ(away.host_peaks[0].value(), updated * 12) << zero;
    EXPECT_GT(away.step_time, there.step_time) << zero;
    EXPECT_LT(away.memory_peaks[0].bytes, there.memory_peaks[0].bytes) << zero;
  }
}

// Two buckets at a time at most: 24 MB of state in buckets of a million parameters and more.
TEST(OffloadTest, TwoBucketsOfStateAreOnTheChip) {
  ParallelPlan plan = plan_of(1, 1, 0);
  plan.offload.optimizer = true;
  plan.messages.gradient_bucket_parameters = 500'000;
  const SimulationResult result = run(plan, with_host(1));
  const std::int64_t largest = parameter_count(small_model()) / 2;
  EXPECT_GT(of_category(result, kOptimizerState), 0);
  EXPECT_LT(of_category(result, kOptimizerState), 2 * largest * 12);
}

// Weights in 16 bits and 12 bytes of state, each value from one replica. A slow link makes the
// optimizer wait; without an optimizer there are weights alone.
TEST(OffloadTest, ACheckpointGoesOutBesideTheStep) {
  const std::int64_t parameters = parameter_count(small_model());
  for (const int zero : {0, 1, 2, 3}) {
    ParallelPlan plan = plan_of(2, 1, zero);
    const SimulationResult alone = run(plan, with_host(2));
    plan.offload.copy_checkpoint = true;
    const SimulationResult fast = run(plan, with_host(2, 1000_GBps));
    EXPECT_EQ(host_bytes(fast), parameters * (12 + 2)) << zero;
    EXPECT_EQ(fast.memory_peaks[0].bytes, alone.memory_peaks[0].bytes) << zero;
    EXPECT_EQ(fast.step_time, alone.step_time) << zero;
    const SimulationResult slow = run(plan, with_host(2, 1_GBps));
    const double copy = static_cast<double>(parameters * 14 / 2) / 1e9;
    EXPECT_GT(to_seconds(slow.step_time), copy) << zero;
    EXPECT_LT(to_seconds(slow.step_time), copy + to_seconds(alone.step_time)) << zero;
  }
  ParallelPlan plan = plan_of(2, 1, 0);
  plan.offload.copy_checkpoint = true;
  plan.training.optimizer = Optimizer::kNone;
  EXPECT_EQ(host_bytes(run(plan, with_host(2))), parameters * 2);
}

// ZeRO-Offload: 4 bytes of gradient out, 2 of weight in.
TEST(OffloadTest, TheHostUpdates) {
  const std::int64_t parameters = parameter_count(small_model());
  for (const int zero : {0, 1, 2, 3}) {
    ParallelPlan plan = plan_of(2, 1, zero);
    plan.offload.optimizer = true;
    plan.update.host_optimizer = true;
    const SimulationResult result = run(plan, with_host(2));
    const std::int64_t updated = zero == 0 ? 2 * parameters : parameters;
    EXPECT_EQ(host_bytes(result), updated * (4 + 2)) << zero;
    EXPECT_EQ(result.host_peaks[0].value(), updated * (12 + 4)) << zero;
    EXPECT_EQ(of_category(result, kOptimizerState), 0) << zero;
    plan.update.clip_gradients = true;
    EXPECT_GE(run(plan, with_host(2)).step_time, result.step_time) << zero;
  }
}

// The bytes that blocks keep are known from the run without offload. They go out and come back.
TEST(OffloadTest, ActivationsGoOutAndComeBack) {
  for (const std::int64_t pp : {1, 2}) {
    ParallelPlan plan = plan_of(1, pp, 0);
    const ModelSpec model = small_model(8);
    const Cluster cluster = with_host(static_cast<int>(pp), 400_GBps);
    const SimulationResult kept = run(plan, cluster, model);
    plan.offload.activations = true;
    const SimulationResult away = run(plan, cluster, model);
    EXPECT_GT(host_bytes(away), 0);
    EXPECT_EQ(host_bytes(away) % (2 * 4 * 8), 0) << "2 x 4 micro-batches x 8 equal blocks";
    const std::int64_t block = host_bytes(away) / (2 * 4 * 8);
    const std::int64_t saved = of_category(kept, kActivations) - of_category(away, kActivations);
    EXPECT_GE(saved, block * (8 / pp - 3)) << "three blocks may be on the chip";
    EXPECT_EQ(kept.flops, away.flops);
    plan.offload.layers = 2;
    EXPECT_EQ(host_bytes(run(plan, cluster, model)), 2 * 4 * 2 * pp * block);
  }
}

// A fast link costs only the first and the last copy. A slow link sets the pace.
TEST(OffloadTest, CopiesHideBehindCompute) {
  ParallelPlan plan = plan_of(1, 1, 0);
  plan.batch.sequence = 4096;
  const ModelSpec model = small_model(16);
  const SimulationResult kept = run(plan, with_host(1), model);
  plan.offload.activations = true;
  const auto seconds = [&](Bandwidth link) {
    return to_seconds(run(plan, with_host(1, link), model).step_time);
  };
  const double alone = to_seconds(kept.step_time);
  EXPECT_GE(seconds(Bandwidth(1e15)), alone);
  EXPECT_NEAR(seconds(Bandwidth(1e15)), alone, 1e-3 * alone);
  EXPECT_GT(seconds(1_GBps), 2 * alone);
  EXPECT_GT(seconds(1_GBps), seconds(2_GBps));
}

TEST(OffloadTest, EverySchedulePassesThroughTheHost) {
  for (const ScheduleName schedule : all_schedules()) {
    for (const bool on_host : {false, true}) {
      ParallelPlan plan = plan_of(1, 4, 0);
      plan.pipeline.schedule = schedule;
      plan.batch.global_batch = 8;
      plan.offload.activations = true;
      plan.offload.optimizer = true;
      plan.update.host_optimizer = on_host;
      const ModelSpec model = small_model(16);
      if (!check(plan, model, with_host(4).places).empty()) continue;
      EXPECT_GT(host_bytes(run(plan, with_host(4), model)), 0);
    }
  }
}

TEST(OffloadTest, KeysThatNeedOthersAreNamed) {
  ParallelPlan plan = plan_of(1, 1, 0);
  plan.update.host_optimizer = true;
  plan.offload.layers = 2;
  const std::vector<Problem> problems = check(plan, small_model(), with_host(1).places);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].field, "host_optimizer");
  EXPECT_EQ(problems[1].field, "offload_layers");
}

}  // namespace
}  // namespace stepsim
