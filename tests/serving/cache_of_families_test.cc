// What a request takes of a cache, as replicas count it and as passes hold it: the same for every
// model of the catalog.

#include <gtest/gtest.h>

#include <string>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"
#include "schedules/plan/inference_plan.h"
#include "serving/passes/kv_room.h"

namespace stepsim {
namespace {

constexpr std::int64_t kBlock = 16;

bool can_be_served(const ModelSpec& model) {
  return model.kind == ModelKind::kTransformer && model.attention.causal &&
         model.mixer_pattern.find('X') == std::string::npos;
}

TEST(CacheOfFamiliesTest, BlocksHoldWhatPassesKeep) {
  int models = 0;
  for (const std::string& name : list(CatalogKind::kModel)) {
    const ModelSpec model = load_model(name);
    if (!can_be_served(model)) continue;
    ++models;
    for (const std::int64_t tp : {1, 4}) {
      ParallelPlan plan;
      plan.mesh.tp = tp;
      const CacheShape shape = shape_of_cache(model, plan, kBlock);
      ASSERT_GT(shape.of_block, Bytes(0)) << name;
      for (const std::int64_t tokens : {16, 160, 4096, 5008, 131'072}) {
        const RequestBatch batch{.groups = {{.cached = tokens - 1, .generates = true}},
                                 .cache = plan.cached()};
        const Bytes kept =
            cache_of_layers(model, batch, tp, CacheSplit::kHeads, 0, model.layers, 1);
        const Bytes blocks = shape.whole(tokens, kBlock) * shape.of_block;
        // Rounded up to a block, and values of windows to a byte a token.
        EXPECT_GE(blocks + Bytes(model.layers), kept) << name << ", " << tokens << ", tp " << tp;
        EXPECT_LE(blocks, kept + 2 * shape.of_block + kept / 200)
            << name << ", " << tokens << ", tp " << tp;
      }
    }
  }
  EXPECT_GT(models, 150);
}

// As many requests as fit: the pass that runs them fills what the engine left, and no more.
TEST(CacheOfFamiliesTest, WhatServesFillsTheMemoryOfAPass) {
  constexpr std::int64_t kTokens = 8192;
  for (const char* const name : {"llama3-8b", "gemma3-27b", "gpt-oss-20b", "qwen3.5-27b",
                                 "deepseek-v2-lite", "falcon-mamba-7b", "jamba-v0.1"}) {
    const auto pass = [&](std::int64_t requests) {
      return load_experiment(
          with_keys({.model = name, .cluster = "dgx-h200-8"},
                    "inference=decode,allow_idle_chips=true,context=" + std::to_string(kTokens) +
                        ",batch=" + std::to_string(requests)));
    };
    const Experiment one = pass(1);
    const Cluster cluster = cluster_for_steps(one);
    EngineOptions engine;
    const KvRoom room = fit_cache(one, cluster, engine);
    ASSERT_TRUE(engine.cache.kv_blocks) << name;
    const std::int64_t requests =
        *engine.cache.kv_blocks / engine.cache.shape.whole(kTokens, engine.cache.block);
    const SimulationResult result =
        simulate_experiment(pass(requests), cluster, {}).runs.front().result;
    const Bytes kept =
        result.memory_peaks.front().by_category[static_cast<std::size_t>(MemoryCategory::kCache)];
    const double share =
        static_cast<double>(kept.value()) / static_cast<double>(room.available.value());
    EXPECT_LE(share, 1.0) << name;
    EXPECT_GE(share, 1 - 1.5 / static_cast<double>(requests) - 0.01) << name;
  }
}

}  // namespace
}  // namespace stepsim
