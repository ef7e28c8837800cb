// The two-matmul model through plan and lowering: its bytes and times, by hand.

#include "workload/mlp_stack.h"

#include <gtest/gtest.h>

#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/plan/axis.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kWidth = 2048;
constexpr std::int64_t kTokens = 1024;

ModelSpec stack(std::int64_t layers) {
  return {.name = "stack",
          .kind = ModelKind::kMlpStack,
          .layers = layers,
          .hidden = kHidden,
          .mlp = {.width = kWidth}};
}

ParallelPlan plan_of(std::int64_t tp, std::int64_t dp, std::int64_t pp, int zero) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.mesh.dp = dp;
  plan.mesh.pp = pp;
  plan.state.zero = zero;
  plan.batch.global_batch = dp * 4;
  plan.batch.microbatch_size = pp > 1 ? 1 : 4;
  plan.batch.sequence = kTokens / 4;
  plan.training.optimizer = Optimizer::kNone;
  plan.update.gradient_bytes = 2;
  return plan;
}

SimulationResult run(const ModelSpec& model, const ParallelPlan& plan, const Cluster& cluster) {
  for (const Problem& problem : check(plan, model, cluster.places)) {
    ADD_FAILURE() << problem.field << " " << problem.message;
  }
  return simulate(lower(model, plan, cluster.places, cluster.chip, {}), cluster, {});
}

Bytes sent(const SimulationResult& result, Axis axis) {
  return result.bytes_by_axis[static_cast<std::size_t>(axis)];
}

// One chip of 1e15 FLOP/s: 12 tokens D F a layer and nothing else, not even an optimizer; each of
// the 3 x 2 kernels a layer rounded up to a picosecond. Memory is fast enough to be no bound.
TEST(MlpStackLowerTest, AStepIsTwelveTokensDFALayer) {
  Cluster cluster = one_node(1, 100_GBps);
  cluster.chip.memory_bandwidth = Bandwidth(1e15);
  const SimulationResult result = run(stack(8), plan_of(1, 1, 1, 0), cluster);
  const double expected = 8 * 12.0 * kTokens * kHidden * kWidth / 1e15;
  EXPECT_NEAR(to_seconds(result.step_time), expected, 8 * 6 * 1e-12);
  EXPECT_EQ(result.breakdown.compute, result.step_time);
}

// A layer gathers twice and reduce-scatters twice, and gathers its input again for the weight
// gradient: 5 (n - 1) boundaries; without sequence parallelism two all-reduces: 4 (n - 1).
TEST(MlpStackLowerTest, ATensorGroupSendsFiveBoundariesALayer) {
  for (const bool sequence_parallel : {true, false}) {
    ParallelPlan plan = plan_of(4, 1, 1, 0);
    plan.tensor.sequence_parallel = sequence_parallel;
    const SimulationResult result = run(stack(6), plan, one_node(4, 100_GBps));
    EXPECT_EQ(sent(result, Axis::kTensor).value(),
              6 * (sequence_parallel ? 5 : 4) * 3 * kTokens * kHidden * 2);
  }
}

// In chunks one part of each gather or scatter is left of the shorter side, k / chunks a pass (in
// the backward the first chunk shares the links with the input gathered again): 3 m + 2 k / chunks
// a layer, m = 4 tokens D F / (4 ways) FLOPs, k = 2 x 3/4 of the activations. The same bytes are
// sent.
TEST(MlpStackLowerTest, CollectiveMatmulsLeaveOneChunk) {
  ParallelPlan plan = plan_of(4, 1, 1, 0);
  plan.pieces.tensor_chunks = 8;
  Cluster cluster = one_node(4, Bandwidth(3e12));
  cluster.chip.memory_bandwidth = Bandwidth(1e18);
  const SimulationResult result = run(stack(6), plan, cluster);
  const double m = kTokens * kHidden * kWidth / 1e15;
  const double k = 2 * 0.75 * kTokens * kHidden * 2 / 3e12;
  const double expected = 6 * (3 * m + 2 * k / 8);
  EXPECT_NEAR(to_seconds(result.step_time), expected, 1e-3 * expected);
  EXPECT_EQ(sent(result, Axis::kTensor).value(), 6 * 5 * 3 * kTokens * kHidden * 2);
  plan.tensor.sequence_parallel = false;
  EXPECT_EQ(check(plan, stack(6), cluster.places).size(), 1U);
}

// Gradients in bf16 twice (all-reduce), or gathered twice and reduced once: 4 or 6 bytes a
// parameter, (n - 1) of them in a group of n.
TEST(MlpStackLowerTest, ReplicasSendWhatTheFormulasSay) {
  const std::int64_t parameters = 6 * 2 * kHidden * kWidth;
  for (const auto& [zero, bytes] : {std::pair{0, 4}, {1, 4}, {3, 6}}) {
    const SimulationResult result = run(stack(6), plan_of(1, 4, 1, zero), one_node(4, 100_GBps));
    EXPECT_EQ(sent(result, Axis::kData).value(), 3 * parameters * bytes) << zero;
  }
}

// All axes and full recompute: the always-on checks hold, and recompute repeats the forward.
TEST(MlpStackLowerTest, EveryAxisAndRecomputeRun) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    ParallelPlan plan = plan_of(2, 2, 2, 1);
    plan.recomputing.kind = recompute;
    const SimulationResult result = run(stack(4), plan, one_node(8, 100_GBps));
    const double matmuls = 2.0 * 4 * kTokens * kHidden * kWidth * 4;
    EXPECT_EQ(result.flops.value(), matmuls * (recompute == Recompute::kFull ? 4 : 3));
  }
}

// Full recompute keeps only the inputs of the layers.
// Other models have the embedding or the head on such a stage.
TEST(MlpStackLowerTest, EveryStageHasLayers) {
  ParallelPlan plan = plan_of(1, 1, 2, 0);
  for (const auto& layout : std::vector<std::vector<std::int64_t>>{{0, 4}, {4, 0}}) {
    plan.pipeline.layout = layout;
    const std::vector<Problem> problems = check(plan, stack(4), one_node(2, 1_GBps).places);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0].field, "layout");
  }
}

TEST(MlpStackLowerTest, RecomputeKeepsOneInputALayer) {
  ParallelPlan plan = plan_of(2, 1, 1, 0);
  plan.recomputing.kind = Recompute::kFull;
  const SimulationResult result = run(stack(4), plan, one_node(2, 100_GBps));
  const MemoryPeak& peak = result.memory_peaks[0];
  // Four inputs of half of the tokens, and what the last layer has made again: half of the width.
  EXPECT_EQ(peak.by_category[static_cast<std::size_t>(MemoryCategory::kActivations)].value(),
            4 * kTokens / 2 * kHidden * 2 + kTokens * kWidth / 2 * 2);
}

}  // namespace
}  // namespace stepsim
