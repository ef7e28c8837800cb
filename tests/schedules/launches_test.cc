// What the host launches in a step of a plan.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "schedules/lowering/lower.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

ModelSpec small_experts() {
  ModelSpec model = small_model();
  model.experts = {.routed = 8, .per_token = 2, .intermediate = 256};
  return model;
}

// Two micro-batches of 256 tokens on each of two ranks.
ParallelPlan launched_plan() {
  ParallelPlan plan;
  plan.mesh.dp = 2;
  plan.batch.global_batch = 4;
  plan.batch.sequence = 256;
  plan.launches.host_launch_cost = 10us;
  return plan;
}

ParallelPlan with_experts_on_two_ranks() {
  ParallelPlan plan = launched_plan();
  plan.mesh.ep = 2;
  return plan;
}

OpGraph lowered(const ModelSpec& model, const ParallelPlan& plan) {
  return lower(model, plan, one_node(2, 100_GBps).places, ideal_chip(), {});
}

std::int64_t waits_of(const OpGraph& graph) {
  return std::ranges::count_if(graph.programs[0].launches, &LaunchCall::waits);
}

std::uint64_t launches_of(const OpGraph& graph) {
  std::uint64_t sum = 0;
  for (const LaunchCall& call : graph.programs[0].launches) sum += call.launches;
  return sum;
}

Duration step_of(const ModelSpec& model, const ParallelPlan& plan) {
  return simulate(lowered(model, plan), one_node(2, 100_GBps), {}).step_time;
}

TEST(LaunchesOfPlanTest, EveryOpIsLaunchedOnceWithAllItsKernels) {
  const OpGraph graph = lowered(small_model(), launched_plan());
  const Program& program = graph.programs[0];
  std::vector<std::uint32_t> ops;
  for (const LaunchCall& call : program.launches) {
    ops.push_back(call.op.index());
    const Op& op = program.ops[call.op.index()];
    const bool computes = op.kind == OpKind::kCompute;
    const auto kernels = computes ? graph.compute_works[op.work].kernels.size() : 1;
    EXPECT_EQ(call.launches, std::max<std::size_t>(kernels, 1));
  }
  std::ranges::sort(ops);
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) EXPECT_EQ(ops[i], i);
  EXPECT_EQ(ops.size(), program.ops.size());
}

TEST(LaunchesOfPlanTest, AStepTakesAtLeastItsLaunches) {
  ParallelPlan plan = launched_plan();
  plan.launches.host_launch_cost = 1ms;
  const OpGraph graph = lowered(small_model(), plan);
  const SimulationResult result = simulate(graph, one_node(2, 100_GBps), {});
  EXPECT_GE(result.step_time, static_cast<std::int64_t>(launches_of(graph)) * 1ms);
  EXPECT_GT(result.breakdown.launch, result.breakdown.compute);
}

TEST(LaunchesOfPlanTest, WithoutACostNobodyLaunches) {
  ParallelPlan plan = launched_plan();
  plan.launches.host_launch_cost.reset();
  const OpGraph graph = lowered(small_model(), plan);
  EXPECT_FALSE(graph.host);
  EXPECT_TRUE(graph.programs[0].launches.empty());
}

// 4 blocks x 2 micro-batches; recomputed experts are counted again.
TEST(LaunchesOfPlanTest, TheHostReadsTheCountsOfEachForwardWithExperts) {
  ParallelPlan plan = with_experts_on_two_ranks();
  EXPECT_EQ(waits_of(lowered(small_experts(), plan)), 8);
  EXPECT_EQ(waits_of(lowered(small_model(), launched_plan())), 0);
  plan.recomputing.kind = Recompute::kFull;
  EXPECT_EQ(waits_of(lowered(small_experts(), plan)), 16);
  plan.launches.host_reads_counts = false;
  EXPECT_EQ(waits_of(lowered(small_experts(), plan)), 0);
}

TEST(LaunchesOfPlanTest, TheHostReadsTheNormOfTheGradients) {
  ParallelPlan plan = launched_plan();
  plan.update.clip_gradients = true;
  EXPECT_EQ(waits_of(lowered(small_model(), plan)), 1);
}

// Blocks as graphs cost a launch an op. Experts whose counts the host reads keep their launches.
TEST(LaunchesOfPlanTest, GraphsCostFewerLaunches) {
  ParallelPlan plan = with_experts_on_two_ranks();
  const std::uint64_t eager = launches_of(lowered(small_experts(), plan));
  plan.launches.cuda_graphs = CudaGraphs::kBlocks;
  const std::uint64_t graphs = launches_of(lowered(small_experts(), plan));
  plan.launches.host_reads_counts = false;
  const std::uint64_t fixed = launches_of(lowered(small_experts(), plan));
  EXPECT_LT(graphs, eager);
  EXPECT_LT(fixed, graphs);
  plan.launches.cuda_graphs = CudaGraphs::kStep;
  EXPECT_FALSE(lowered(small_experts(), plan).host);
}

TEST(LaunchesOfPlanTest, CheaperLaunchesAreNeverSlower) {
  ParallelPlan plan = with_experts_on_two_ranks();
  Duration faster{};
  for (const Duration cost : {Duration(1us), Duration(10us), Duration(100us)}) {
    plan.launches.host_launch_cost = cost;
    const Duration step = step_of(small_experts(), plan);
    EXPECT_GT(step, faster);
    faster = step;
  }
}

}  // namespace
}  // namespace stepsim
