#include <gtest/gtest.h>

#include "experiment/finished_run.h"
#include "experiment/step_metrics.h"

namespace stepsim {
namespace {

// Matmul parameters: a layer has 4 projections of 8 x 8 and 3 MLP matrices of 8 x 16, 640 in all;
// two layers and the unembedding of 8 x 32: 1,536.
// 40 tokens: 6 x 1,536 x 40 = 368,640 FLOPs. Attention forward, a layer and sequence, causal:
// 2 x (10^2 / 2) x 2 heads x (2 x 4) = 1,600; 3 x 2 layers x 4 sequences of that: 38,400.
constexpr double kMatmulFlops = 368'640;
constexpr double kCausalAttentionFlops = 38'400;

Experiment experiment() {
  Experiment experiment;
  experiment.model.layers = 2;
  experiment.model.hidden = 8;
  experiment.model.mlp.width = 16;
  experiment.model.attention.heads = 2;
  experiment.model.attention.kv_heads = 2;
  experiment.model.attention.head_dim = 4;
  experiment.model.embedding.vocabulary = 32;
  experiment.plan.mesh.tp = 2;
  experiment.plan.mesh.pp = 2;
  experiment.plan.batch.global_batch = 4;
  experiment.plan.batch.sequence = 10;
  experiment.cluster.chip.set_peak(DataType::kBf16, Throughput(1e9));
  experiment.cluster.chip.set_peak(DataType::kFp8, Throughput(2e9));
  return experiment;
}

SimulationResult one_millisecond() {
  SimulationResult result;
  result.step_time = Duration(1'000'000'000);
  result.flops = Flops(500'000);
  return result;
}

TEST(MetricsTest, TokensPerSecondCountTheGlobalBatch) {
  const StepMetrics metrics = measure(experiment(), one_millisecond());
  EXPECT_EQ(metrics.chips, 4);
  EXPECT_DOUBLE_EQ(metrics.tokens_per_s, 40 / 1e-3);
  EXPECT_DOUBLE_EQ(metrics.tokens_per_s_per_chip, 10 / 1e-3);
}

TEST(MetricsTest, UtilizationIsAgainstThePeakOfTheRanksUsed) {
  const StepMetrics metrics = measure(experiment(), one_millisecond());
  EXPECT_DOUBLE_EQ(metrics.model_flops, kMatmulFlops + kCausalAttentionFlops);
  EXPECT_DOUBLE_EQ(metrics.model_flops_utilization,
                   (kMatmulFlops + kCausalAttentionFlops) / (1e-3 * 4 * 1e9));
  EXPECT_DOUBLE_EQ(metrics.hardware_flops_utilization, 500'000 / (1e-3 * 4 * 1e9));
}

TEST(MetricsTest, FullAttentionCountsTwiceThePairs) {
  const StepMetrics metrics = measure(experiment(), one_millisecond(), AttentionFlops::kFull);
  EXPECT_DOUBLE_EQ(metrics.model_flops, kMatmulFlops + 2 * kCausalAttentionFlops);
  EXPECT_EQ(name_of(metrics.convention), "full");
}

TEST(MetricsTest, ThePeakIsThatOfThePlansType) {
  Experiment fp8 = experiment();
  fp8.plan.precision.type = DataType::kFp8;
  const StepMetrics metrics = measure(fp8, one_millisecond());
  EXPECT_EQ(metrics.peak_per_chip, Throughput(2e9));
  EXPECT_DOUBLE_EQ(metrics.hardware_flops_utilization, 500'000 / (1e-3 * 4 * 2e9));
}

TEST(MetricsTest, ChipsWithoutARankAreIdle) {
  Cluster cluster;
  for (const char* name : {"a", "b", "c", "d"}) {
    cluster.places.chips.push_back(cluster.fabric.add(NodeKind::kChip, name));
  }
  OpGraph graph;
  graph.ranks.resize(2);
  graph.ranks[0].chip = 3;
  graph.ranks[1].chip = 1;
  EXPECT_EQ(idle_chips(graph, cluster), (std::vector<std::uint32_t>{0, 2}));
}

}  // namespace
}  // namespace stepsim
