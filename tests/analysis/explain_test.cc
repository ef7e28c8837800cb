// Explanations of small steps that can be worked out by hand. Every account must add up.

#include "experiment/explained/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "books/laboratory/stack_step.h"
#include "experiment/build_cluster.h"
#include "experiment/explained/traffic_costs.h"
#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"
#include "schedules/plan/inference_plan.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr std::int64_t kWidth = 8192;
constexpr std::int64_t kMlpWidth = 32768;

ModelSpec stack(std::int64_t layers) {
  return {.name = "stack",
          .kind = ModelKind::kMlpStack,
          .layers = layers,
          .hidden = kWidth,
          .mlp = {.width = kMlpWidth}};
}

ParallelPlan plan_of(std::int64_t tp, std::int64_t dp, std::int64_t pp) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.mesh.dp = dp;
  plan.mesh.pp = pp;
  plan.batch.global_batch = dp * (pp > 1 ? 8 : 1);
  plan.batch.sequence = 2048;
  plan.update.gradient_bytes = 2;
  plan.messages.gradient_bucket_parameters = 1;
  plan.training.optimizer = Optimizer::kNone;
  return plan;
}

// FSDP reduces layer by layer.
void divide(ParallelPlan& plan, int zero) {
  plan.state.zero = zero;
  if (zero == 3)
    plan.messages.gradient_bucket_parameters = ParallelPlan{}.messages.gradient_bucket_parameters;
}

Explanation explanation_of(const ModelSpec& model, const ParallelPlan& plan,
                           const Cluster& cluster) {
  Experiment experiment;
  experiment.name = "test";
  experiment.model = model;
  experiment.plan = plan;
  experiment.cluster.chip = cluster.chip;
  for (const Problem& problem : check(plan, model, cluster.places)) {
    ADD_FAILURE() << problem.field << " " << problem.message;
  }
  ExperimentOptions options;
  options.record_each_role = true;  // with a plain causal ring, ranks have different programs
  const SimulatedExperiment done = simulate_experiment(experiment, cluster, options);
  const SimulatedStep& step = done.runs.front();
  return explain({.experiment = experiment,
                  .cluster = cluster,
                  .graph = done.graph,
                  .options = step.options,
                  .result = step.result,
                  .metrics = step.metrics});
}

template <typename Part>
double amount(const Part& part, const std::string& text) {
  for (const ExplainedCause& cause : part.causes) {
    if (cause.text.find(text) != std::string::npos) return cause.amount;
  }
  return 0;
}

const ExplainedPart& part_named(const std::vector<ExplainedPart>& parts, const std::string& name) {
  return *std::ranges::find(parts, name, &ExplainedPart::name);
}
const ExplainedTraffic& traffic_named(const Explanation& explanation, const std::string& name) {
  return *std::ranges::find(explanation.traffic, name, &ExplainedTraffic::name);
}
const ExplainedThreshold& limit_of(const Explanation& explanation, const std::string& formula) {
  return *std::ranges::find(explanation.limits, formula, &ExplainedThreshold::formula);
}

template <typename Parts>
void expect_causes_add_up(const Parts& parts, double scale) {
  for (const auto& part : parts) {
    double sum = part.predicted;
    for (const ExplainedCause& cause : part.causes) sum += cause.amount;
    EXPECT_NEAR(sum, part.simulated, 1e-6 * scale) << part.name;
  }
}

TEST(ExplainTest, EveryAccountAddsUp) {
  ModelSpec decoder{.name = "decoder", .layers = 4, .hidden = 1024, .mlp = {.width = 4096}};
  decoder.attention.heads = decoder.attention.kv_heads = 8;
  decoder.attention.head_dim = 128;
  decoder.embedding.vocabulary = 32000;
  for (const ModelSpec& model : {stack(4), decoder}) {
    for (const int zero : {0, 1, 3}) {
      ParallelPlan plan = plan_of(2, 2, 2);
      divide(plan, zero);
      const Explanation explanation = explanation_of(model, plan, one_node(8, 100_GBps, 1us));
      double predicted = 0;
      double simulated = 0;
      for (const ExplainedPart& part : explanation.parts) {
        predicted += part.predicted;
        simulated += part.simulated;
      }
      const double step = explanation.step.simulated;
      EXPECT_NEAR(predicted, explanation.step.predicted, 1e-12 * step);
      EXPECT_NEAR(simulated, step, 1e-9 * step);
      expect_causes_add_up(explanation.parts, step);
      expect_causes_add_up(explanation.traffic, step);
      double peak = 0;
      for (const ExplainedPart& part : explanation.memory) peak += part.simulated;
      expect_causes_add_up(explanation.memory, peak);
    }
  }
}

TEST(ExplainTest, PassesWithExpertsOnTheirOwnChipsAddUp) {
  ModelSpec model{.name = "experts", .layers = 4, .hidden = 1024, .mlp = {.width = 4096}};
  model.attention.heads = model.attention.kv_heads = 8;
  model.attention.head_dim = 128;
  model.embedding.vocabulary = 32000;
  model.experts = {.routed = 8, .per_token = 2, .intermediate = 8192};
  ParallelPlan plan;
  plan.pass.inference = Inference::kDecode;
  plan.tensor.sequence_parallel = false;
  plan.mesh.dp = plan.mesh.expert_chips = 4;
  plan.pass.pass_microbatches = 2;
  plan.batch.global_batch = 64;
  plan.pass.context = 256;
  complete_inference(model, plan);
  const Explanation explanation = explanation_of(model, plan, one_node(8, 10_GBps, 1us));
  double simulated = 0;
  for (const ExplainedPart& part : explanation.parts) simulated += part.simulated;
  const double step = explanation.step.simulated;
  EXPECT_NEAR(simulated, step, 1e-9 * step);
  expect_causes_add_up(explanation.parts, step);
  expect_causes_add_up(explanation.traffic, step);
  const ExplainedPart& bubble = part_named(explanation.parts, "pipeline bubble");
  EXPECT_GT(amount(bubble, "experts wait"), 0);
  // Experts alone: 4 layers x 8 experts x 3 matrices x 1,024 x 8,192 x 2 bytes over 4 chips.
  EXPECT_DOUBLE_EQ(part_named(explanation.memory, "parameters").predicted,
                   4.0 * 8 * 3 * 1024 * 8192 * 2 / 4);
}

struct SignedCase {
  const char* name;
  ExperimentSource source;
};

std::vector<SignedCase> signed_cases() {
  const std::string dense = "llama3.2-1b";
  const std::string fewer = "model.layers=4";
  // 2:1 above leaves of two nodes.
  const std::vector<std::string> tapered = {"model.layers=4",
                                            "cluster.dgx_superpod.nodes_per_scalable_unit=2",
                                            "cluster.dgx_superpod.oversubscription=2"};
  const std::string rest = ",microbatch=1,sequence=2048,global-batch=";
  return {
      {"2:1, FSDP",
       {.model = dense,
        .cluster = "dgx-h100-64",
        .plan = "dp=32,cp=2,zero=3" + rest + "32",
        .overrides = tapered}},
      {"2:1, ZeRO 1",
       {.model = dense,
        .cluster = "dgx-h100-64",
        .plan = "tp=4,dp=16,zero=1" + rest + "16",
        .overrides = tapered}},
      {"full bisection",
       {.model = dense,
        .cluster = "dgx-h100-64",
        .plan = "tp=2,pp=2,dp=16,zero=1" + rest + "64",
        .overrides = {fewer}}},
      {"switches that add",
       {.model = dense,
        .cluster = "dgx-h100-8",
        .plan = "tp=8,zero=0" + rest + "1",
        .overrides = {fewer}}},
      {"a torus",
       {.model = dense,
        .cluster = "v5p-4x4x8",
        .plan = "tp=4,dp=32,zero=3" + rest + "32",
        .overrides = {fewer}}},
      {"lines",
       {.model = dense,
        .cluster = "v5e-4x4",
        .plan = "tp=4,dp=4,zero=2" + rest + "4",
        .overrides = {fewer}}},
      {"PCIe",
       {.model = dense,
        .cluster = "pcie-a100-64",
        .plan = "tp=2,dp=32,zero=1" + rest + "32",
        .overrides = {fewer}}},
      {"shared cards",
       {.model = dense,
        .cluster = "trn1-64",
        .plan = "dp=64,zero=3" + rest + "64",
        .overrides = {fewer}}},
      {"experts",
       {.model = "mixtral-8x7b",
        .cluster = "dgx-h100-64",
        .plan = "dp=64,ep=8,zero=1" + rest + "64",
        .overrides = {fewer}}},
  };
}

Explanation explanation_of(const ExperimentSource& source, Granularity granularity) {
  const LoadedExperiment loaded = load_with_topology(source);
  const Cluster cluster = cluster_for_steps(loaded.experiment);
  ExperimentOptions options = loaded.simulation;
  options.record_each_role = true;
  options.granularity = granularity;
  const SimulatedExperiment done = simulate_experiment(loaded.experiment, cluster, options);
  const SimulatedStep& step = done.runs.front();
  return explain({.experiment = loaded.experiment,
                  .cluster = cluster,
                  .graph = done.graph,
                  .options = step.options,
                  .result = step.result,
                  .metrics = step.metrics});
}

// More links that are shared, more latency and more bytes on the wire can't be faster, and a part
// of V is not more than V: each cause has one sign, on any cluster, in pipelined and stepped runs.
TEST(ExplainTest, EachCauseHasItsSignAndTheSumIsExact) {
  for (const SignedCase& one : signed_cases()) {
    for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
      const Explanation explanation = explanation_of(one.source, granularity);
      EXPECT_FALSE(explanation.traffic.empty()) << one.name;
      for (const ExplainedTraffic& traffic : explanation.traffic) {
        double sum = traffic.predicted;
        for (const ExplainedCause& cause : traffic.causes) {
          sum += cause.amount;
          const auto row = std::ranges::find(traffic_causes(), cause.text, &TrafficCauseRow::text);
          ASSERT_NE(row, traffic_causes().end()) << cause.text;
          EXPECT_EQ(cause.amount > 0, row->adds)
              << one.name << ", " << traffic.name << ": " << cause.text << " " << cause.amount;
        }
        EXPECT_NEAR(sum, traffic.simulated, 1e-9 * traffic.simulated)
            << one.name << ", " << traffic.name;
      }
      expect_causes_add_up(explanation.parts, explanation.step.simulated);
    }
  }
}

// One leaf for two nodes, with half the uplinks. cp x dp = 64 ranks divide the state, whatever the
// network is.
TEST(ExplainTest, TakingAwayItsOwnPartIsAPartOfV) {
  const Explanation explanation =
      explanation_of(signed_cases().front().source, Granularity::kPipelined);
  const ExplainedTraffic& traffic = traffic_named(explanation, "dp gradients");
  EXPECT_NEAR(amount(traffic, "(n-1)/n"), -traffic.predicted / 64, 1e-9 * traffic.predicted);
  EXPECT_GE(amount(traffic, "links shared by ranks"), 0);
}

// C / (3 x 180 GB/s) = 850 tokens; 2,048 are enough.
TEST(ExplainTest, SaysWhereDataParallelismIsComputeBound) {
  ParallelPlan plan = plan_of(1, 64, 1);
  const Explanation explanation = explanation_of(stack(4), plan, ideal_v5p({4, 4, 4}));
  const ExplainedThreshold& limit = limit_of(explanation, "E1");
  EXPECT_EQ(limit.limit, 850);
  EXPECT_EQ(limit.actual, 2048);
  EXPECT_TRUE(limit.met);
  EXPECT_NE(limit.text.find("from 850; you have 2048"), std::string::npos) << limit.text;
  plan.batch.sequence = 512;
  EXPECT_FALSE(limit_of(explanation_of(stack(4), plan, ideal_v5p({4, 4, 4})), "E1").met);
}

// A layer all-reduces 2 x 2 D F bytes over three axes of 180 GB/s. 1/64 of that does not move. With
// 2,048 tokens everything except the last all-reduce hides.
TEST(ExplainTest, TakesDataParallelTrafficApart) {
  const Explanation explanation = explanation_of(stack(4), plan_of(1, 64, 1), ideal_v5p({4, 4, 4}));
  const double layer = 8.0 * kWidth * kMlpWidth / (3 * kV5pAxis);
  const ExplainedTraffic& traffic = traffic_named(explanation, "dp gradients");
  EXPECT_NEAR(traffic.predicted, 4 * layer, 1e-9);
  EXPECT_NEAR(amount(traffic, "(n-1)/n"), -4 * layer / 64, 1e-9);
  // Exact to the bytes by which thirds of thirds are rounded up.
  EXPECT_NEAR(traffic.simulated, 4 * layer * 63 / 64, 1e-8);
  const ExplainedPart& exposed = part_named(explanation.parts, "exposed dp");
  EXPECT_EQ(exposed.predicted, 0);
  EXPECT_NEAR(exposed.simulated, layer * 63 / 64, 1e-8);
  EXPECT_NEAR(amount(exposed, "hidden in this run"), -3 * layer * 63 / 64, 1e-8);
}

// Two layers gather and reduce-scatter twice each, 2,048 x D values over an axis of 180 GB/s. On a
// line of 4 a ring has one direction, 3/4 V over 90 GB/s. The line costs as much again as the ring.
TEST(ExplainTest, SaysWhatALineAndItsTripsCost) {
  const double whole = 8 * 2048.0 * kWidth * 2 / kV5pAxis;
  const auto traffic_on = [](Duration hop, bool wraps) {
    Cluster axis = ring_of(4, Bandwidth(kV5pLink), hop, wraps);
    axis.chip = ideal_v5p({4}).chip;
    return traffic_named(explanation_of(stack(2), plan_of(4, 1, 1), axis), "tp");
  };
  const ExplainedTraffic line = traffic_on({}, false);
  EXPECT_NEAR(line.predicted, whole, 1e-9);
  EXPECT_NEAR(amount(line, "(n-1)/n"), -whole / 4, 1e-9);
  EXPECT_NEAR(amount(line, "lines, not rings"), whole * 3 / 4, 1e-9);
  EXPECT_NEAR(line.simulated, whole * 3 / 2, 1e-8);
  // Two trips, half way round both ways, of each of eight collectives.
  const ExplainedTraffic ring = traffic_on(1us, true);
  EXPECT_NEAR(amount(ring, "latency"), 8 * 2e-6, 1e-9);
  EXPECT_EQ(amount(ring, "lines"), 0);
  EXPECT_NEAR(ring.simulated, whole * 3 / 4 + 8 * 2e-6, 1e-8);
}

ModelSpec small_decoder() {
  ModelSpec decoder{.name = "decoder", .layers = 4, .hidden = 1024, .mlp = {.width = 4096}};
  decoder.attention.heads = 8;
  decoder.attention.kv_heads = 2;
  decoder.attention.head_dim = 128;
  decoder.embedding.vocabulary = 32000;
  return decoder;
}

// Keys and values of a ring hide behind attention from C / (W G) tokens a chip: 1e15 / (100e9 x 4)
// = 2,500. 2,048 of 4,096 tokens a chip hide 2048 / 2500 of what goes round.
TEST(ExplainTest, AttentionHidesARotationAsFarAsItsTokensReach) {
  ParallelPlan plan = plan_of(1, 1, 1);
  plan.mesh.cp = 2;
  plan.batch.sequence = 4096;
  for (const ContextMode mode : {ContextMode::kZigzagRing, ContextMode::kUlysses}) {
    plan.tensor.cp_mode = mode;
    const Explanation explanation = explanation_of(small_decoder(), plan, one_node(2, 100_GBps));
    const ExplainedPart& exposed = part_named(explanation.parts, "exposed cp");
    double whole = 0;
    for (const ExplainedTraffic& one : explanation.traffic) {
      if (one.axis == "cp") whole += one.predicted;
    }
    const bool rotates = mode == ContextMode::kZigzagRing;
    EXPECT_NEAR(exposed.predicted, rotates ? whole * (1 - 2048.0 / 2500) : whole, 1e-9);
    EXPECT_EQ(exposed.formula, rotates ? "E23" : "");
    const auto limit =
        std::ranges::find(explanation.limits, std::string("E23"), &ExplainedThreshold::formula);
    EXPECT_EQ(limit != explanation.limits.end(), rotates);
    if (rotates) {
      EXPECT_EQ(limit->limit, 2500);
    }
  }
}

// A stack of MLPs has no attention that could hide a rotation, and nothing to rotate.
TEST(ExplainTest, StacksOfMlpsHaveContextRanksToo) {
  ParallelPlan plan = plan_of(1, 1, 1);
  plan.mesh.cp = 2;
  EXPECT_NO_THROW(explanation_of(stack(2), plan, one_node(2, 100_GBps)));
}

// Three layers on two stages: the longer one has two gathered at a time.
TEST(ExplainTest, UnevenStagesHoldWholeLayers) {
  ParallelPlan plan = plan_of(1, 2, 2);
  divide(plan, 3);
  plan.pipeline.layout = {1, 2};
  plan.state.reshard_after_forward = false;
  EXPECT_NO_THROW(explanation_of(stack(3), plan, one_node(4, 100_GBps)));
}

// A causal mask gives ranks of a plain ring unequal work, so twice the tokens are needed. If every
// token looks at all others, work is equal.
TEST(ExplainTest, OnlyACausalRingNeedsTwiceTheTokensToHideItsRotation) {
  ParallelPlan plan = plan_of(1, 1, 1);
  plan.mesh.cp = 2;
  plan.batch.sequence = 4096;
  plan.tensor.cp_mode = ContextMode::kRing;
  ModelSpec model = small_decoder();
  for (const bool causal : {true, false}) {
    model.attention.causal = causal;
    const Explanation explanation = explanation_of(model, plan, one_node(2, 100_GBps));
    EXPECT_EQ(limit_of(explanation, "E23").limit, causal ? 5000 : 2500);
  }
}

// With experts divided over ranks, each reduces the gradients of its own: E / ep of them count.
TEST(ExplainTest, ExpertsOfARankDecideWhereDataParallelismIsComputeBound) {
  ModelSpec model = small_decoder();
  model.experts = {.routed = 8, .per_token = 2, .intermediate = 1024};
  ParallelPlan plan = plan_of(1, 4, 1);
  const auto limit = [&] {
    return limit_of(explanation_of(model, plan, one_node(4, 100_GBps)), "E12").limit;
  };
  const double alone = limit();
  plan.mesh.ep = 2;
  EXPECT_NEAR(limit(), alone / 2, 1e-6 * alone);
}

// Weights have 2 bytes whatever type matmuls compute in. Only the experts that a rank gathers
// count.
TEST(ExplainTest, MemoryCountsWeightsInTheirOwnTypeAndExpertsByTheirOwnRanks) {
  ModelSpec model = small_decoder();
  model.experts = {.routed = 8, .per_token = 2, .intermediate = 1024};
  ParallelPlan plan = plan_of(1, 4, 1);
  divide(plan, 3);
  plan.mesh.ep = 4;  // without replicas, experts are not gathered
  const Explanation explanation = explanation_of(model, plan, one_node(4, 100_GBps));
  const ExplainedPart& gathered = part_named(explanation.memory, "gathered parameters");
  const ExplainedPart& weights = part_named(explanation.memory, "parameters");
  const double experts = 4.0 * 8 * 3 * 1024 * 1024;
  const double dense = static_cast<double>(parameter_count(model)) - experts;
  EXPECT_NEAR(gathered.predicted, 2 * 2 * dense / 4, 1);
  EXPECT_NEAR(weights.predicted, 2 * (dense / 4 + experts / 4), 1);
}

// 1F1B of 4 equal stages and 8 micro-batches: (P - 1)/m = 3/8 of the work, with messages that take
// almost no time.
TEST(ExplainTest, FindsThePublishedBubble) {
  const Explanation explanation =
      explanation_of(stack(4), plan_of(1, 1, 4), one_node(4, Bandwidth(1e15)));
  const ExplainedPart& bubble = part_named(explanation.parts, "pipeline bubble");
  EXPECT_EQ(bubble.formula, "G1.ratio");
  const ExplainedPart& compute = part_named(explanation.parts, "compute");
  EXPECT_NEAR(bubble.predicted, compute.predicted * 3 / 8, 1e-12);
  EXPECT_NEAR(bubble.simulated, compute.simulated * 3 / 8, 1e-3 * bubble.simulated);
}

}  // namespace
}  // namespace stepsim
