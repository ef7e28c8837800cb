// Compares two-dimensional weight-stationary tensor parallelism with its closed form. simulate()
// compares the bytes sent with planned_bytes(); this test counts bytes on links.

#include "schedules/lowering/steps/weight_stationary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/plan/axis.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"
#include "workload/layers.h"

namespace stepsim {
namespace {

using namespace literals;

ModelSpec model() {
  ModelSpec model = small_model();
  model.attention.kv_heads = 8;
  return model;
}

ParallelPlan plan_of(std::int64_t tp, std::int64_t width) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.tensor.tensor_width = width;
  plan.batch.global_batch = 4;
  plan.batch.sequence = 256;
  return plan;
}

SimulationResult run(const ModelSpec& model, const ParallelPlan& plan) {
  const Cluster cluster = one_node(static_cast<int>(plan.mesh.ranks()), 100_GBps);
  EXPECT_EQ(check(plan, model, cluster.places), std::vector<Problem>{});
  return simulate(lower(model, plan, cluster.places, cluster.chip, {}), cluster, {});
}

std::int64_t sent(const SimulationResult& result) {
  return result.bytes_by_axis[static_cast<std::size_t>(Axis::kTensor)].value();
}

// A layer of two matmuls, X ways of the width and Y of the features, in bf16. Forward: a gather and
// a reduce-scatter of [B, D/X] over Y, and of [B, F/Y] over X; backward the same, and both inputs
// gathered again. A gather of N bytes moves (n - 1) N in a group of n.
TEST(WeightStationaryTest, AStackSendsItsClosedForm) {
  const std::int64_t b = 256, d = 512, f = 1024, x = 2, y = 4, layers = 3;
  const ModelSpec stack{.name = "stack",
                        .kind = ModelKind::kMlpStack,
                        .layers = layers,
                        .hidden = d,
                        .mlp = {.width = f}};
  ParallelPlan plan = plan_of(x * y, x);
  plan.training.optimizer = Optimizer::kNone;
  const std::int64_t over_features = x * (y - 1) * 2 * b * d / x;
  const std::int64_t over_width = y * (x - 1) * 2 * b * f / y;
  EXPECT_EQ(sent(run(stack, plan)), 4 * layers * 5 * (over_features + over_width));
  plan.recomputing.kind = Recompute::kFull;
  EXPECT_EQ(sent(run(stack, plan)), 4 * layers * 7 * (over_features + over_width));
}

// In one dimension gathers and reduce-scatters move (N - 1) 2BD bytes each. In two they move (Y -
// 1) 2BD and (X - 1) 2BF: less with many ranks, more with few.
TEST(WeightStationaryTest, ManyRanksSendLessThanInOneDimension) {
  const ModelSpec stack{.name = "stack",
                        .kind = ModelKind::kMlpStack,
                        .layers = 2,
                        .hidden = 8192,
                        .mlp = {.width = 32768}};
  const auto bytes = [&](std::int64_t tp, std::int64_t width) {
    ParallelPlan plan = plan_of(tp, width);
    plan.batch.sequence = 128;
    return sent(run(stack, plan));
  };
  EXPECT_EQ(bytes(128, 4) * 127, bytes(128, 1) * (31 + 4 * 3));
  EXPECT_EQ(bytes(8, 4) * 7, bytes(8, 1) * (1 + 4 * 3));
}

// Weights, FLOPs and kept activations are divided by tp either way.
TEST(WeightStationaryTest, DividesWeightsAndWorkAsOneDimensionDoes) {
  const SimulationResult one = run(model(), plan_of(8, 1));
  const SimulationResult two = run(model(), plan_of(8, 2));
  for (const MemoryCategory category : {MemoryCategory::kActivations, MemoryCategory::kBuffers}) {
    EXPECT_GT(two.memory_peaks[0].by_category[static_cast<std::size_t>(category)], Bytes(0));
  }
  const auto shard = [](std::int64_t width) {
    return build_layers(model(), {.sequences = 1,
                                  .sequence_length = 256,
                                  .tensor = 8,
                                  .sequence_parallel = true,
                                  .tensor_width = width})
        .block(0);
  };
  EXPECT_EQ(shard(2).saved(), shard(1).saved());
  EXPECT_EQ(shard(2).parameters(Region::kTensor), shard(1).parameters(Region::kTensor));
  EXPECT_EQ(8 * shard(2).parameters(Region::kSequence), shard(1).parameters(Region::kSequence))
      << "norms are divided too";
  EXPECT_NEAR(two.flops.value() / one.flops.value(), 1, 1e-3);
}

TEST(WeightStationaryTest, RunsWithEveryAxisAndSchedule) {
  std::vector<ModelSpec> models = {model(), model(), model()};
  models[1].dropout = models[1].attention.bias = models[1].mlp.bias = true;
  models[1].mlp.gated = false;
  models[1].norms.kind = NormKind::kLayer;
  models[1].embedding.learned_positions = 256;
  models[2].parallel_branches = models[2].embedding.tied = models[2].attention.qk_norm = true;
  for (const ModelSpec& each : models) {
    for (const int zero : {0, 2, 3}) {
      ParallelPlan plan = plan_of(4, 2);
      plan.mesh.dp = 2;
      plan.batch.global_batch = 8;
      plan.state.zero = zero;
      run(each, plan);
    }
    for (const ScheduleName schedule :
         {ScheduleName::kOneForwardOneBackward, ScheduleName::kZeroBubbleH1,
          ScheduleName::kInterleaved, ScheduleName::kDualPipe}) {
      ParallelPlan plan = plan_of(4, 2);
      plan.mesh.pp = 2;
      plan.pipeline.schedule = schedule;
      plan.recomputing.kind = Recompute::kFull;
      run(each, plan);
    }
    for (std::size_t mode = 0; mode < kContextModes; ++mode) {
      ParallelPlan plan = plan_of(4, 2);
      plan.mesh.cp = 2;
      plan.tensor.cp_mode = static_cast<ContextMode>(mode);
      run(each, plan);
    }
  }
}

TEST(WeightStationaryTest, SaysWhatItNeeds) {
  const Cluster cluster = one_node(8, 100_GBps);
  const auto problems = [&](const ParallelPlan& plan) {
    std::string text;
    for (const Problem& problem : check(plan, model(), cluster.places)) {
      text += problem.field + " " + problem.message + "\n";
    }
    return text;
  };
  EXPECT_NE(problems(plan_of(8, 3))
                .find("tensor_width is 3, which does not divide the tensor ranks "
                      "(tp) (8); nearest: 2 or 4"),
            std::string::npos)
      << problems(plan_of(8, 3));
  EXPECT_NE(problems(plan_of(8, 8)).find("some ranks must divide the features"), std::string::npos);
  ParallelPlan plan = plan_of(8, 2);
  plan.recomputing.kind = Recompute::kMatmuls;
  EXPECT_NE(problems(plan).find("recompute none or full"), std::string::npos);
}

}  // namespace
}  // namespace stepsim
