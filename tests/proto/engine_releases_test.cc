#include "proto/catalog/engine_releases.h"

#include <gtest/gtest.h>

#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"
#include "serving/serving_text.h"

namespace stepsim {
namespace {

EngineSetting on_chip(const std::string& name, std::int64_t tp = 1) {
  return {.chip = name, .memory = load_chip(name).memory_capacity, .tp = tp};
}

std::int64_t chunk_of(const EngineOptions& options) {
  return own_options<SglangOptions>(options).chunk;
}

EngineOptions options_of_release(const std::string& text, const EngineSetting& setting) {
  std::vector<Problem> problems;
  const ReplicaGroup group =
      read_engine(with_release(text, "--engine", setting, problems), problems);
  EXPECT_EQ(problems, std::vector<Problem>{}) << text << " on " << setting.chip;
  return group.options;
}

TEST(EngineReleasesTest, EveryReleaseHasDefaultsForEveryChip) {
  for (const EngineRelease& release : load_engine_releases()) {
    for (const std::string& chip : list(CatalogKind::kChip)) {
      for (const std::int64_t tp : {1, 8}) {
        for (const char* const usage : {"", "/offline"}) {
          const std::string name = release.engine + "@" + release.name + usage;
          const EngineOptions options = options_of_release(name, on_chip(chip, tp));
          EXPECT_GT(options.cache.kv_fraction, 0.5) << name << " on " << chip;
          EXPECT_LT(options.cache.kv_fraction, 0.95) << name << " on " << chip;
        }
      }
    }
  }
}

TEST(EngineReleasesTest, VllmAsksForMemoryAndUsage) {
  const auto budget = [](const std::string& text, const std::string& chip) {
    return options_of_release(text, on_chip(chip)).batching.budget;
  };
  EXPECT_EQ(budget("vllm@0.11", "h100-sxm"), 8192);
  EXPECT_EQ(budget("vllm@0.11/offline", "h100-sxm"), 16'384);
  EXPECT_EQ(budget("vllm@0.11", "a100-sxm-80gb"), 2048);
  EXPECT_EQ(budget("vllm@0.11", "mi300x"), 8192);
  EXPECT_EQ(budget("vllm@0.8", "mi300x"), 2048);  // by name, then
  EXPECT_EQ(budget("vllm@0.8", "h200-sxm"), 8192);
  EXPECT_EQ(budget("vllm@0.11", "rtx4090"), 2048);
  EXPECT_EQ(budget("vllm@0.11", "tpu-v5e"), 512);
  EXPECT_EQ(options_of_release("vllm@0.11", on_chip("h100-sxm")).batching.sequences, 1024);
  EXPECT_EQ(options_of_release("vllm@0.11", on_chip("l40s")).batching.sequences, 256);
  EXPECT_FALSE(options_of_release("vllm@0.11", on_chip("l40s")).cache.reserve_whole_sequence);
  EXPECT_TRUE(options_of_release("vllm@2026", on_chip("l40s")).cache.reserve_whole_sequence);
}

TEST(EngineReleasesTest, SglangReservesByMemoryAndLayout) {
  const EngineOptions one = options_of_release("sglang@0.5", on_chip("h100-sxm"));
  EXPECT_EQ(chunk_of(one), 8192);
  EXPECT_EQ(one.cache.kv_fraction, 0.835);  // 1 - (512 + 12,288 + 512 + 128) / 81,559
  EXPECT_LT(options_of_release("sglang@0.5", on_chip("h100-sxm", 8)).cache.kv_fraction, 0.82);
  EXPECT_EQ(chunk_of(options_of_release("sglang@0.5", on_chip("mi300x", 8))), 16'384);
  EXPECT_EQ(chunk_of(options_of_release("sglang@0.4", on_chip("rtx4090"))), 2048);
  EXPECT_EQ(options_of_release("sglang@0.4", on_chip("h100-sxm", 8)).cache.kv_fraction, 0.831);
}

TEST(EngineReleasesTest, KeysBehindTheReleaseGoFirst) {
  const EngineOptions options =
      options_of_release("vllm@0.11,budget=100,kv_fraction=0.7", on_chip("h100-sxm"));
  EXPECT_EQ(options.batching.budget, 100);
  EXPECT_EQ(options.cache.kv_fraction, 0.7);
  EXPECT_EQ(options.batching.sequences, 1024);
  std::vector<Problem> problems;
  // Without a release the memory of the newest stands before the keys.
  const std::string newest = with_release("vllm,budget=1", "--engine", {}, problems);
  EXPECT_TRUE(newest.starts_with("vllm,") && newest.ends_with(",budget=1")) << newest;
  EXPECT_TRUE(problems.empty());
}

TEST(EngineReleasesTest, UnknownReleasesAreRefused) {
  std::vector<Problem> problems;
  EXPECT_EQ(with_release("vllm@0.1,budget=1", "--engine", {}, problems), "vllm,budget=1");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().message.find("There are: vllm@0.8"), std::string::npos);
  problems.clear();
  with_release("vllm@0.8/home", "--engine", {}, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().message.find("server or offline"), std::string::npos);
}

}  // namespace
}  // namespace stepsim
