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
  plan.inference = Inference::kDecode;
  plan.global_batch = 16;
  plan.context = 128;
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
  plan.allow_idle_chips = true;
  return fields_of(check(plan, model, one_node(8, 100_GBps).places));
}

using Fields = std::vector<std::string>;

TEST(InferencePlanTest, WhatIsLeftOutFollows) {
  ParallelPlan plan = decode();
  plan.tp = 2;
  plan.dp = 2;
  complete_inference(small_model(), plan);
  EXPECT_EQ(plan.sequence, 1);
  EXPECT_EQ(plan.microbatch_size, 8);
  EXPECT_FALSE(plan.sequence_parallel);
  const RequestBatch batch = requests_of(plan);
  ASSERT_EQ(batch.groups.size(), 1U);
  EXPECT_EQ(batch.groups[0],
            (RequestGroup{.sequences = 8, .queries = 1, .cached = 127, .generates = true}));

  ParallelPlan prefill = decode();
  prefill.inference = Inference::kPrefill;
  prefill.sequence = 64;
  prefill.context = 0;
  complete_inference(small_model(), prefill);
  EXPECT_EQ(requests_of(prefill).groups[0], (RequestGroup{.sequences = 16, .queries = 64}));
}

TEST(InferencePlanTest, GoodPlansHaveNoProblem) {
  EXPECT_EQ(problems_of(decode()), Fields{});
  ParallelPlan chunk = decode();
  chunk.prefill_tokens = 32;
  chunk.prefill_context = 96;
  EXPECT_EQ(problems_of(chunk), Fields{});
}

TEST(InferencePlanTest, EveryProblemIsNamed) {
  ParallelPlan plan = decode();
  plan.context = 0;
  plan.zero = 3;
  plan.recompute = Recompute::kFull;
  plan.prefill_context = 10;
  EXPECT_EQ(problems_of(plan), (Fields{"context", "prefill_context", "recompute", "zero"}));

  ParallelPlan short_context = decode();
  short_context.sequence = 4;
  short_context.context = 3;
  EXPECT_EQ(problems_of(short_context), Fields{"context"});

  ParallelPlan prefill = decode();
  prefill.inference = Inference::kPrefill;
  prefill.sequence = 64;
  prefill.prefill_tokens = 10;
  EXPECT_EQ(problems_of(prefill), (Fields{"prefill_tokens"}));
}

TEST(InferencePlanTest, KeysOfInferenceNeedIt) {
  ParallelPlan plan;
  plan.global_batch = 8;
  plan.sequence = 64;
  plan.context = 64;
  plan.cache_type = DataType::kFp8;
  EXPECT_EQ(problems_of(plan), (Fields{"cache_dtype", "context"}));
}

TEST(InferencePlanTest, EncodersDontGenerate) {
  ModelSpec model = small_model();
  model.causal = false;
  EXPECT_EQ(problems_of(decode(), model), (Fields{"context", "inference"}));
}

TEST(InferencePlanTest, CachesByRequestNeedATensorGroup) {
  ParallelPlan plan = decode();
  plan.cache_split = CacheSplit::kRequests;
  EXPECT_EQ(problems_of(plan), Fields{"cache_split"});
  ParallelPlan training;
  training.global_batch = 8;
  training.sequence = 64;
  training.cache_split = CacheSplit::kRequests;
  EXPECT_EQ(problems_of(training), Fields{"cache_split"});
}

// Behind attention and behind the MLP an all-reduce of [tokens, hidden], and one behind the
// embedding; logits are gathered.
TEST(InferencePlanTest, APassSendsTheStreamTwiceALayer) {
  const ModelSpec model = small_model();
  ParallelPlan plan = decode();
  plan.tp = 2;
  complete_inference(model, plan);
  const Cluster cluster = one_node(2, 100_GBps);
  const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
  const SimulationResult result = simulate(graph, cluster, {});
  const std::int64_t stream = 16 * model.hidden * 2;
  const std::int64_t logits = 16 * ((model.vocabulary + 1) / 2 * 2) * 2;
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
  plan.tp = 2;
  complete_inference(model, plan);
  const Cluster cluster = one_node(2, 100_GBps);
  const auto simulated = [&](CacheSplit split) {
    plan.cache_split = split;
    const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
    return simulate(graph, cluster, {});
  };
  const SimulationResult heads = simulated(CacheSplit::kHeads);
  const SimulationResult requests = simulated(CacheSplit::kRequests);
  const auto sent = [](const SimulationResult& result) {
    return result.bytes_by_axis[static_cast<std::size_t>(Axis::kTensor)];
  };
  const std::int64_t queries = model.heads * model.qk_dim() / 2;
  const std::int64_t keys = model.kv_heads * (model.head_dim + model.v_dim()) / 2;
  const std::int64_t results = model.heads * model.v_dim() / 2;
  EXPECT_EQ(sent(requests) - sent(heads),
            Bytes(model.layers * 16 * (queries + keys + results) * 2));
  EXPECT_EQ(requests.memory_peaks[0].by_category[static_cast<std::size_t>(MemoryCategory::kCache)],
            model.layers * 8 * cache_size(model, {}, 1, DataType::kBf16, 128));
}

TEST(InferencePlanTest, LongerContextsAndLargerBatchesTakeLonger) {
  const auto time = [](std::int64_t batch, std::int64_t context) {
    ParallelPlan plan = decode();
    plan.global_batch = batch;
    plan.context = context;
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
