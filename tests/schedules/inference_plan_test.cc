// Plans of inference: what they leave open, what they refuse, and what a pass sends.

#include "schedules/plan/inference_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/plan/axis.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

ParallelPlan decode() {
  ParallelPlan plan;
  plan.pass.inference = Inference::kDecode;
  plan.tensor.sequence_parallel = false;
  plan.batch.global_batch = 16;
  plan.pass.context = 128;
  return plan;
}

std::vector<std::string> fields_of(const std::vector<Problem>& problems) {
  std::vector<std::string> fields;
  for (const Problem& problem : problems) fields.push_back(problem.field);
  std::ranges::sort(fields);
  return fields;
}

std::vector<std::string> problems_of(ParallelPlan plan, const ModelSpec& model = small_model()) {
  complete_inference(model, plan);
  plan.mesh.allow_idle_chips = true;
  return fields_of(check(plan, model, one_node(8, 100_GBps).places));
}

using Fields = std::vector<std::string>;

TEST(InferencePlanTest, WhatIsLeftOutFollows) {
  ParallelPlan plan = decode();
  plan.mesh.tp = 2;
  plan.mesh.dp = 2;
  complete_inference(small_model(), plan);
  EXPECT_EQ(plan.batch.sequence, 1);
  EXPECT_EQ(plan.batch.microbatch_size, 8);
  const RequestBatch batch = requests_of(plan);
  ASSERT_EQ(batch.groups.size(), 1U);
  EXPECT_EQ(batch.groups[0],
            (RequestGroup{.sequences = 8, .queries = 1, .cached = 127, .generates = true}));

  ParallelPlan prefill = decode();
  prefill.pass.inference = Inference::kPrefill;
  prefill.batch.sequence = 64;
  prefill.pass.context = 0;
  complete_inference(small_model(), prefill);
  EXPECT_EQ(requests_of(prefill).groups[0], (RequestGroup{.sequences = 16, .queries = 64}));
}

TEST(InferencePlanTest, GoodPlansHaveNoProblem) {
  EXPECT_EQ(problems_of(decode()), Fields{});
  ParallelPlan chunk = decode();
  chunk.pass.prefill_tokens = 32;
  chunk.pass.prefill_context = 96;
  EXPECT_EQ(problems_of(chunk), Fields{});
}

TEST(InferencePlanTest, EveryProblemIsNamed) {
  ParallelPlan plan = decode();
  plan.pass.context = 0;
  plan.state.zero = 3;
  plan.recomputing.kind = Recompute::kFull;
  plan.pass.prefill_context = 10;
  EXPECT_EQ(problems_of(plan), (Fields{"context", "prefill_context", "recompute", "zero"}));

  ParallelPlan short_context = decode();
  short_context.batch.sequence = 4;
  short_context.pass.context = 3;
  EXPECT_EQ(problems_of(short_context), Fields{"context"});

  ParallelPlan prefill = decode();
  prefill.pass.inference = Inference::kPrefill;
  prefill.batch.sequence = 64;
  prefill.pass.prefill_tokens = 10;
  EXPECT_EQ(problems_of(prefill), (Fields{"prefill_tokens"}));
}

TEST(InferencePlanTest, KeysOfInferenceNeedIt) {
  ParallelPlan plan;
  plan.batch.global_batch = 8;
  plan.batch.sequence = 64;
  plan.pass.context = 64;
  plan.cache.type = DataType::kFp8;
  EXPECT_EQ(problems_of(plan), (Fields{"cache_dtype", "context"}));
}

TEST(InferencePlanTest, EncodersDontGenerate) {
  ModelSpec model = small_model();
  model.attention.causal = false;
  EXPECT_EQ(problems_of(decode(), model), (Fields{"context", "inference"}));
}

TEST(InferencePlanTest, CachesByRequestNeedATensorGroup) {
  ParallelPlan plan = decode();
  plan.cache.split = CacheSplit::kRequests;
  EXPECT_EQ(problems_of(plan), Fields{"cache_split"});
  ParallelPlan training;
  training.batch.global_batch = 8;
  training.batch.sequence = 64;
  training.cache.split = CacheSplit::kRequests;
  EXPECT_EQ(problems_of(training), Fields{"cache_split"});
}

// Behind attention and behind the MLP an all-reduce of [tokens, hidden], and one behind the
// embedding; logits are gathered.
TEST(InferencePlanTest, APassSendsTheStreamTwiceALayer) {
  const ModelSpec model = small_model();
  ParallelPlan plan = decode();
  plan.mesh.tp = 2;
  complete_inference(model, plan);
  const Cluster cluster = one_node(2, 100_GBps);
  const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
  const SimulationResult result = simulate(graph, cluster, {});
  const std::int64_t stream = 16 * model.hidden * 2;
  const std::int64_t logits = 16 * ((model.embedding.vocabulary + 1) / 2 * 2) * 2;
  EXPECT_EQ(result.bytes_by_axis[static_cast<std::size_t>(Axis::kTensor)],
            Bytes(2 * (2 * model.layers + 1) * stream + logits));
  EXPECT_EQ(result.bytes_by_axis[static_cast<std::size_t>(Axis::kData)], Bytes(0));
  const MemoryBytes& held = result.memory_peaks[0].by_category;
  EXPECT_EQ(held[static_cast<std::size_t>(MemoryCategory::kCache)],
            model.layers * 16 * cache_size(model, {}, 2, DataType::kBf16, 128));
  EXPECT_EQ(held[static_cast<std::size_t>(MemoryCategory::kOptimizer)], Bytes(0));
  EXPECT_EQ(held[static_cast<std::size_t>(MemoryCategory::kActivations)], Bytes(0));
}

// Two all-to-alls a layer more, and each chip keeps whole caches of half of the requests.
TEST(InferencePlanTest, CachesByRequestExchangeQueriesAndResults) {
  const ModelSpec model = small_model();
  ParallelPlan plan = decode();
  plan.mesh.tp = 2;
  complete_inference(model, plan);
  const Cluster cluster = one_node(2, 100_GBps);
  const auto simulated = [&](CacheSplit split) {
    plan.cache.split = split;
    const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
    return simulate(graph, cluster, {});
  };
  const SimulationResult heads = simulated(CacheSplit::kHeads);
  const SimulationResult requests = simulated(CacheSplit::kRequests);
  const auto sent = [](const SimulationResult& result) {
    return result.bytes_by_axis[static_cast<std::size_t>(Axis::kTensor)];
  };
  const std::int64_t queries = model.attention.heads * model.qk_dim() / 2;
  const std::int64_t keys =
      model.attention.kv_heads * (model.attention.head_dim + model.v_dim()) / 2;
  const std::int64_t results = model.attention.heads * model.v_dim() / 2;
  EXPECT_EQ(sent(requests) - sent(heads),
            Bytes(model.layers * 16 * (queries + keys + results) * 2));
  EXPECT_EQ(requests.memory_peaks[0].by_category[static_cast<std::size_t>(MemoryCategory::kCache)],
            model.layers * 8 * cache_size(model, {}, 1, DataType::kBf16, 128));
}

Bytes sent_by(const SimulationResult& result, Axis axis) {
  return result.bytes_by_axis[static_cast<std::size_t>(axis)];
}

Bytes held_at(const SimulationResult& result, MemoryCategory category) {
  return result.memory_peaks[0].by_category[static_cast<std::size_t>(category)];
}

// A gather and a reduce-scatter in place of each all-reduce, and before the head a gather; 15
// tokens are padded to 16. Norms and residuals of half of the tokens take less.
TEST(InferencePlanTest, SequenceParallelPassesGatherAndScatter) {
  const ModelSpec model = small_model();
  const Cluster cluster = one_node(2, 100_GBps);
  const auto simulated = [&](bool divides, std::int64_t batch) {
    ParallelPlan plan = decode();
    plan.mesh.tp = 2;
    plan.batch.global_batch = batch;
    plan.tensor.sequence_parallel = divides;
    complete_inference(model, plan);
    EXPECT_EQ(fields_of(check(plan, model, cluster.places)), Fields{});
    return simulate(lower(model, plan, cluster.places, cluster.chip, {}), cluster, {});
  };
  const std::int64_t stream = 16 * model.hidden * 2;
  const auto logits = [&](std::int64_t tokens) {
    return tokens * ((model.embedding.vocabulary + 1) / 2 * 2) * 2;
  };
  const std::int64_t crossings = 2 * model.layers + 1;
  EXPECT_EQ(sent_by(simulated(false, 16), Axis::kTensor),
            Bytes(2 * crossings * stream + logits(16)));
  EXPECT_EQ(sent_by(simulated(true, 16), Axis::kTensor),
            Bytes(2 * crossings * stream + logits(16)));
  EXPECT_EQ(sent_by(simulated(true, 15), Axis::kTensor),
            Bytes(2 * crossings * stream + logits(15)));
  EXPECT_LT(simulated(true, 1 << 14).flops.value(), simulated(false, 1 << 14).flops.value());
}

// Each of 4 context ranks has a quarter of the tokens and of the cache, gathers keys and values of
// all tokens, those in the cache too, and scores a quarter of the pairs.
TEST(InferencePlanTest, ContextRanksDividePrompts) {
  const ModelSpec model = small_model();
  const Cluster cluster = one_node(4, 100_GBps);
  const auto graph_of = [&](std::int64_t cp, std::int64_t context) {
    ParallelPlan plan = decode();
    plan.pass.inference = Inference::kPrefill;
    plan.batch.global_batch = 2;
    plan.batch.sequence = 64;
    plan.pass.context = context;
    plan.mesh.cp = cp;
    if (cp > 1) plan.tensor.cp_mode = ContextMode::kAllGather;
    plan.mesh.allow_idle_chips = true;
    complete_inference(model, plan);
    EXPECT_EQ(fields_of(check(plan, model, cluster.places)), Fields{});
    return lower(model, plan, cluster.places, cluster.chip, {});
  };
  const auto attention_flops = [](const OpGraph& graph) {
    double flops = 0;
    for (const ComputeWork& work : graph.compute_works) {
      for (const Kernel& kernel : work.kernels) {
        if (kernel.name == "attention") flops = std::max(flops, kernel.flops.value());
      }
    }
    return flops;
  };
  const OpGraph whole = graph_of(1, 96);
  const OpGraph divided = graph_of(4, 96);
  EXPECT_NEAR(attention_flops(divided), attention_flops(whole) / 4, 1e-6 * attention_flops(whole));
  const SimulationResult alone = simulate(whole, cluster, {});
  const SimulationResult together = simulate(divided, cluster, {});
  const std::int64_t keys =
      model.attention.kv_heads * (model.attention.head_dim + model.v_dim()) * 2;
  EXPECT_EQ(sent_by(together, Axis::kContext), Bytes(model.layers * 3 * 2 * 96 * keys));
  EXPECT_EQ(4 * held_at(together, MemoryCategory::kCache), held_at(alone, MemoryCategory::kCache));
  EXPECT_EQ(held_at(together, MemoryCategory::kParameters),
            held_at(alone, MemoryCategory::kParameters));

  ParallelPlan generates = decode();
  generates.mesh.cp = 4;
  EXPECT_EQ(problems_of(generates), (Fields{"cp", "sequence"}));
  generates.tensor.cp_mode = ContextMode::kUlysses;
  EXPECT_EQ(problems_of(generates), (Fields{"cp", "cp_mode", "sequence"}));
}

// Both halves of an exchange say what they are; two-level exchanges and steps of training don't.
TEST(InferencePlanTest, ExchangesWithExpertsSayWhatTheyAre) {
  ModelSpec model = small_model();
  model.experts = {.routed = 8, .per_token = 2, .intermediate = 64};
  const Cluster cluster = one_node(4, 100_GBps);
  const auto halves = [&](Dispatch dispatch, bool trains) {
    ParallelPlan plan = decode();
    plan.mesh.dp = plan.mesh.ep = 4;
    plan.experts.dispatch = dispatch;
    if (trains) {
      plan.pass.inference = Inference::kNone;
      plan.batch.sequence = 16;
      plan.pass.context = 0;
    }
    complete_inference(model, plan);
    EXPECT_EQ(fields_of(check(plan, model, cluster.places)), Fields{});
    const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
    simulate(graph, cluster, {});
    std::vector<ExpertHalf> found;
    for (const CollectiveWork& work : graph.collective_works) {
      if (work.experts) found.push_back(*work.experts);
    }
    return found;
  };
  const Bytes token(2 * model.hidden);
  const ExpertHalf there{.tokens = 4, .top_k = 2, .experts = 8, .token_bytes = token};
  ExpertHalf back = there;
  back.combines = true;
  EXPECT_EQ(halves(Dispatch::kAllToAll, false), (std::vector{there, back}));
  EXPECT_TRUE(halves(Dispatch::kTwoLevel, false).empty());
  EXPECT_TRUE(halves(Dispatch::kAllToAll, true).empty());
}

// Four chips as 2 x 2. Over the features: two gathers and two scatters of [16, 512 / 2] a block, in
// two groups of two. Over the width, in two groups of two: queries, keys and values, what attention
// gives, and what enters and leaves the MLP. Norms sum a value a token over all.
TEST(InferencePlanTest, TwoDimensionalWeightsSendWhatIsLeft) {
  const auto sent = [](std::int64_t layers, CacheSplit split) {
    ModelSpec model = small_model(layers);
    model.norms.kind = NormKind::kRms;
    ParallelPlan plan = decode();
    plan.mesh.tp = 4;
    plan.tensor.tensor_width = 2;
    plan.tensor.sequence_parallel = true;
    plan.cache.split = split;
    complete_inference(model, plan);
    const Cluster cluster = one_node(4, 100_GBps);
    EXPECT_EQ(fields_of(check(plan, model, cluster.places)), Fields{});
    const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
    return simulate(graph, cluster, {}).bytes_by_axis[static_cast<std::size_t>(Axis::kTensor)];
  };
  const ModelSpec model = small_model();
  constexpr std::int64_t kTokens = 16;
  const std::int64_t features = 4 * 2 * (kTokens * 512 / 2) * 2;
  const std::int64_t queries_and_keys = (8 + 2 * 4) * 64;
  const std::int64_t mlp = (model.mlp.gated ? 3 : 2) * 1024;
  const std::int64_t width = kTokens * (queries_and_keys + 8 * 64 + mlp) * 2;
  const std::int64_t norms = 2 * 2 * (4 - 1) * kTokens * 4;
  const Bytes block(features + width + norms);
  EXPECT_EQ(sent(6, CacheSplit::kHeads) - sent(4, CacheSplit::kHeads), 2 * block);
  EXPECT_GT(sent(4, CacheSplit::kRequests), sent(4, CacheSplit::kHeads)) << "queries travel too";
}

TEST(InferencePlanTest, LongerContextsAndLargerBatchesTakeLonger) {
  const auto time = [](std::int64_t batch, std::int64_t context) {
    ParallelPlan plan = decode();
    plan.batch.global_batch = batch;
    plan.pass.context = context;
    complete_inference(small_model(), plan);
    const Cluster cluster = one_node(2, 100_GBps);
    return simulate(lower(small_model(), plan, cluster.places, cluster.chip, {}), cluster, {})
        .step_time;
  };
  EXPECT_LT(time(16, 128), time(16, 4096));
  EXPECT_LT(time(16, 128), time(256, 128));
}

}  // namespace
}  // namespace stepsim
