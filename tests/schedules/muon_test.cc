// Muon: its matmuls, its state, and who has which matrix, counted by hand.

#include "schedules/lowering/stages/muon.h"

#include <gtest/gtest.h>

#include <string>

#include "schedules/lowering/lower.h"
#include "schedules/plan/axis.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

using namespace literals;

ParallelPlan plan_of(Optimizer optimizer, std::int64_t dp = 1, int zero = 0, std::int64_t tp = 1) {
  ParallelPlan plan;
  plan.mesh.dp = dp;
  plan.mesh.tp = tp;
  plan.state.zero = zero;
  plan.batch.global_batch = dp;
  plan.batch.sequence = 256;
  plan.training.optimizer = optimizer;
  return plan;
}

SimulationResult run(const ParallelPlan& plan) {
  const Cluster cluster = one_node(static_cast<int>(plan.mesh.ranks()), 100_GBps);
  for (const Problem& problem : check(plan, small_model(), cluster.places)) {
    ADD_FAILURE() << problem.field << problem.message;
  }
  return simulate(lower(small_model(), plan, cluster.places, cluster.chip, {}), cluster, {});
}

// FLOPs of the kernels called newton_schulz in the first program.
double steps_of(const ParallelPlan& plan) {
  const Cluster cluster = one_node(static_cast<int>(plan.mesh.ranks()), 100_GBps);
  const OpGraph graph = lower(small_model(), plan, cluster.places, cluster.chip, {});
  double flops = 0;
  for (const ComputeWork& work : graph.compute_works) {
    for (const Kernel& kernel : work.kernels) {
      if (kernel.name == "newton_schulz") flops += kernel.flops.value();
    }
  }
  return flops;
}

double of_matrix(double a, double b) {
  return 5 * (4 * a * a * b + 2 * a * a * a);
}

// Of each of four layers: 1024 x 512 of queries, keys and values (16 heads of 64 wide), 512 x 512
// out, 2048 x 512 of gate and up, 512 x 1024 down.
TEST(MuonTest, StepsAreThreeMatmulsOfEveryMatrix) {
  const double layer =
      of_matrix(512, 1024) + of_matrix(512, 512) + of_matrix(512, 2048) + of_matrix(512, 1024);
  EXPECT_DOUBLE_EQ(steps_of(plan_of(Optimizer::kMuon)), 4 * layer);
  EXPECT_EQ(steps_of(plan_of(Optimizer::kAdam)), 0);
  ParallelPlan plan = plan_of(Optimizer::kMuon);
  plan.update.newton_schulz_steps = 10;
  EXPECT_DOUBLE_EQ(steps_of(plan), 8 * layer);
}

// A tensor rank's part is a matrix of its own: half the rows, or half the columns.
TEST(MuonTest, TensorRanksHaveMatricesOfTheirOwn) {
  const double layer =
      of_matrix(512, 512) + of_matrix(256, 512) + of_matrix(512, 1024) + of_matrix(512, 512);
  EXPECT_DOUBLE_EQ(steps_of(plan_of(Optimizer::kMuon, 1, 0, 2)), 4 * layer);
}

// Under ZeRO-1 whole matrices belong to replicas. Of 16 on 4 replicas each has four.
TEST(MuonTest, ReplicasHaveWholeMatrices) {
  const double all = steps_of(plan_of(Optimizer::kMuon, 4, 0));
  const double one = steps_of(plan_of(Optimizer::kMuon, 4, 1));
  EXPECT_GE(one, all / 4);
  EXPECT_LE(one, all / 4 + of_matrix(512, 512));
}

TEST(MuonTest, TheBusiestReplicaCounts) {
  const WeightMatrix large{.rows = 400, .columns = 100};
  const auto of = [&](std::int64_t count, std::int64_t shards) {
    return own_matrices({{.rows = 100, .columns = 100, .count = count}, large}, shards);
  };
  EXPECT_EQ(of(2, 2), (std::vector<WeightMatrix>{large}));
  // 18 million FLOPs a step of the large one, 6 of each small one: three of them beside it.
  EXPECT_EQ(of(9, 2).size(), 4U);
  EXPECT_EQ(of(1, 64), (std::vector<WeightMatrix>{large}));
  EXPECT_TRUE(own_matrices({}, 8).empty());
}

// Matrices lack the second moment; tables and norms have both.
TEST(MuonTest, MatricesHaveOneMoment) {
  constexpr auto kState = static_cast<std::size_t>(MemoryCategory::kOptimizer);
  const auto state = [](const ParallelPlan& plan) {
    return run(plan).memory_peaks.front().by_category[kState].value();
  };
  const std::int64_t matrices = matrix_parameter_count(small_model());
  EXPECT_EQ(matrices, 4 * (1024 * 512 + 512 * 512 + 2048 * 512 + 512 * 1024));
  EXPECT_EQ(state(plan_of(Optimizer::kAdam)) - state(plan_of(Optimizer::kMuon)), 4 * matrices);
  ParallelPlan narrow = plan_of(Optimizer::kMuon);
  narrow.update.optimizer_bytes = 8;
  narrow.update.second_moment_bytes = 2;
  EXPECT_EQ(state(narrow), 8 * parameter_count(small_model()) - 2 * matrices);
}

// FSDP brings matrices together and divides the updates again: two all-to-alls in bf16.
TEST(MuonTest, DividedMatricesAreExchangedTwice) {
  const auto sent = [](Optimizer optimizer) {
    const SimulationResult result = run(plan_of(optimizer, 4, 3));
    return result.bytes_by_axis[static_cast<std::size_t>(Axis::kData)].value();
  };
  // Each of four ranks sends three quarters of its quarter of the matrices, twice, 2 bytes a value.
  EXPECT_EQ(sent(Optimizer::kMuon) - sent(Optimizer::kAdam),
            2 * 2 * matrix_parameter_count(small_model()) * 3 / 4);
  EXPECT_GT(run(plan_of(Optimizer::kMuon, 4, 3)).step_time,
            run(plan_of(Optimizer::kAdam, 4, 3)).step_time);
}

TEST(MuonTest, SaysWhatDoesNotGoWithIt) {
  ParallelPlan plan = plan_of(Optimizer::kMuon);
  plan.update.second_moment_bytes = 16;
  const Cluster cluster = one_node(1, 100_GBps);
  EXPECT_EQ(check(plan, small_model(), cluster.places).front().field, "second_moment_bytes");
}

}  // namespace
}  // namespace stepsim
