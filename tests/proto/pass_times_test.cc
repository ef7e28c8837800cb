// PassTimes against passes that are simulated, for batches of every kind on clusters of the
// catalog.

#include "experiment/passes/pass_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"

namespace stepsim {
namespace {

Experiment serving(const std::string& model, const std::string& cluster, const std::string& plan) {
  return load_experiment(with_keys({.model = model, .cluster = cluster},
                                   "inference=decode,batch=16,context=100," + plan));
}

RequestGroup generating(std::int64_t sequences, std::int64_t cached) {
  return {.sequences = sequences, .cached = cached, .generates = true};
}
RequestGroup prompt(std::int64_t tokens, std::int64_t cached = 0) {
  return {.queries = tokens, .cached = cached};
}

std::vector<RequestBatch> batches() {
  return {{.groups = {generating(1, 500)}},
          {.groups = {generating(61, 3000)}},
          {.groups = {generating(200, 1)}},
          {.groups = {prompt(17)}},
          {.groups = {prompt(3000, 1000)}},
          {.groups = {prompt(700), prompt(900, 100)}},
          {.groups = {generating(33, 2000), prompt(479, 512)}},
          {.groups = {generating(250, 700), prompt(100), prompt(1698)}}};
}

// The largest relative error over batches().
double worst_error(const Experiment& experiment) {
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  double worst = 0;
  for (const RequestBatch& batch : batches()) {
    const double quick = to_seconds(times.of(batch));
    const double exact = to_seconds(times.simulated(batch));
    worst = std::max(worst, std::abs(quick / exact - 1));
  }
  return worst;
}

TEST(PassTimesTest, AreWithinHalfAPercentOfSimulatedPasses) {
  EXPECT_LT(worst_error(serving("llama3-8b", "dgx-h100-8", "tp=8")), 0.005);
  EXPECT_LT(worst_error(serving("llama3-8b", "dgx-h100-8", "tp=2,pp=4")), 0.005);
  EXPECT_LT(worst_error(serving("gpt-oss-20b", "dgx-h100-8", "tp=8")), 0.005);
  EXPECT_LT(worst_error(serving("deepseek-v2-lite", "dgx-h100-8", "tp=8")), 0.005);
  EXPECT_LT(worst_error(serving("nemotron-h-8b", "dgx-h100-8", "tp=8")), 0.005);
  // Attention of one head a block beside prompts; collectives that are most of a pass.
  EXPECT_LT(worst_error(serving("llama3-8b", "pcie-rtx-pro-6000-se-8", "tp=8")), 0.005);
  EXPECT_LT(worst_error(serving("llama3-8b", "pcie-rtx-pro-6000-se-8", "dp=8")), 0.005);
}

// Tokens travel otherwise in passes that have prompts: dispatch=auto.
TEST(PassTimesTest, PassesThatChooseTheirDispatchToo) {
  for (const auto& [cluster, ranks] :
       {std::pair{"dgx-h100-16", "dp=16,ep=16"}, std::pair{"dgx-h100-8", "dp=8,ep=8"}}) {
    const Experiment experiment = load_experiment(
        with_keys({.model = "deepseek-v2-lite", .cluster = cluster, .library = "sglang-0.5-hopper"},
                  std::string("inference=decode,batch=16,context=100,") + ranks));
    ASSERT_EQ(experiment.plan.experts.dispatch, Dispatch::kAuto);
    EXPECT_LT(worst_error(experiment), 0.005) << cluster;
  }
}

// Where kernels wait for their launches nothing is added up: requests that generate are
// interpolated over their contexts, all other batches simulated.
TEST(PassTimesTest, PassesWhoseHostWaitsToo) {
  for (const auto& [model, plan] : {std::pair{"deepseek-v2-lite", "dp=16,ep=16,dispatch=two_level"},
                                    std::pair{"llama3-8b", "tp=8,dp=2,host_launch_cost=20us"}}) {
    const Experiment experiment = load_experiment(
        with_keys({.model = model, .cluster = "dgx-h100-16", .library = "sglang-0.5-hopper"},
                  std::string("inference=decode,batch=16,context=100,") + plan));
    EXPECT_LT(worst_error(experiment), 0.005) << model;
    PassTimes times(experiment, cluster_for_steps(experiment), {});
    for (std::int64_t cached = 1; cached < 60'000; cached = 3 * cached / 2 + 1) {
      const RequestBatch batch{.groups = {generating(100, cached)}};
      EXPECT_NEAR(to_seconds(times.of(batch)) / to_seconds(times.simulated(batch)), 1, 0.005)
          << model << " " << cached;
    }
  }
}

std::vector<RequestBatch> prompts() {
  return {{.groups = {prompt(17)}},
          {.groups = {prompt(1)}},
          {.groups = {prompt(3000, 1000)}},
          {.groups = {prompt(64, 60'000)}},
          {.groups = {prompt(700), prompt(900, 100)}},
          {.groups = {prompt(2048, 2048), prompt(100), prompt(33, 7), prompt(5)}},
          {.groups = {{.sequences = 40, .queries = 2}}}};
}

Experiment dividing_prompts(const std::string& model, const std::string& plan) {
  return load_experiment(
      with_keys({.model = model, .cluster = "dgx-h100-16"},
                "inference=prefill,batch=1,sequence=16,allow_idle_chips=true," + plan));
}

TEST(PassTimesTest, PromptsThatContextRanksDivide) {
  for (const auto& [model, plan] :
       {std::pair{"llama3-8b", "tp=4,cp=2"}, std::pair{"llama3-8b", "tp=4,cp=4,cache_dtype=fp8"},
        std::pair{"llama3-8b", "tp=2,cp=2,pp=2"}, std::pair{"deepseek-v2-lite", "tp=4,cp=4"},
        std::pair{"gpt-oss-20b", "tp=8,cp=2,sequence_parallel=true"}}) {
    const Experiment experiment = dividing_prompts(model, plan);
    PassTimes times(experiment, cluster_for_steps(experiment), {});
    for (const RequestBatch& batch : prompts()) {
      const double quick = to_seconds(times.of(batch));
      EXPECT_NEAR(quick / to_seconds(times.simulated(batch)), 1, 0.005)
          << model << " " << plan << " " << batch.groups.front().queries;
    }
  }
}

// Times step up where a matmul begins another tile, and prompts end anywhere.
TEST(PassTimesTest, PromptsThatEndInsideATile) {
  const Experiment experiment = dividing_prompts("llama3-8b", "tp=4,cp=2");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  for (std::int64_t tokens = 520; tokens < 9000; tokens += 212) {
    const RequestBatch batch{.groups = {prompt(tokens)}};
    EXPECT_NEAR(to_seconds(times.of(batch)) / to_seconds(times.simulated(batch)), 1, 0.005)
        << tokens;
  }
}

// In a ring messages and attention run side by side, so nothing is added up: each batch is
// simulated once.
TEST(PassTimesTest, RingsAreSimulatedOnce) {
  const Experiment experiment = dividing_prompts("llama3-8b", "tp=4,cp=4,cp_mode=zigzag_ring");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  for (const RequestBatch& batch : prompts()) EXPECT_EQ(times.of(batch), times.simulated(batch));
  const std::uint64_t before = times.simulations();
  for (const RequestBatch& batch : prompts()) times.of(batch);
  EXPECT_EQ(times.simulations(), before);
}

TEST(PassTimesTest, PassesWithExpertsOnTheirOwnChips) {
  for (const std::string plan :
       {"dp=4,ffn_chips=4,pass_microbatches=2", "dp=4,ffn_chips=2,allow_idle_chips=true",
        "tp=2,dp=2,ffn_chips=4,pass_microbatches=3"}) {
    const Experiment experiment = serving("deepseek-v2-lite", "dgx-h100-8", plan);
    PassTimes times(experiment, cluster_for_steps(experiment), {});
    const auto error = [&](const RequestBatch& batch) {
      return std::abs(to_seconds(times.of(batch)) / to_seconds(times.simulated(batch)) - 1);
    };
    for (const std::int64_t requests : {1, 2, 7, 61, 200, 333}) {
      for (const std::int64_t cached : {3, 500, 3000, 70'000}) {
        EXPECT_LT(error({.groups = {generating(requests, cached)}}), 0.005)
            << plan << ": " << requests << " requests of " << cached;
      }
    }
    EXPECT_EQ(error({.groups = {generating(33, 2000), prompt(479, 512)}}), 0);
  }
}

TEST(PassTimesTest, ExactOnesAreSimulated) {
  const Experiment experiment = serving("llama3-8b", "dgx-h100-8", "tp=8");
  PassTimes times(experiment, cluster_for_steps(experiment), {}, PassTimes::Precision::kEveryBatch);
  for (const RequestBatch& batch : batches()) EXPECT_EQ(times.of(batch), times.simulated(batch));
}

TEST(PassTimesTest, FewPassesAreSimulated) {
  const Experiment experiment = serving("llama3-8b", "dgx-h100-8", "tp=8");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  for (std::int64_t sequences = 1; sequences <= 256; ++sequences) {
    for (std::int64_t cached = 100; cached < 5000; cached += 50) {
      times.of({.groups = {generating(sequences, cached)}});
    }
  }
  EXPECT_LT(times.simulations(), 300U);
}

TEST(PassTimesTest, ABatchOfThePlansKeysIsThatOfTheRun) {
  const Experiment experiment = serving("llama3-8b", "dgx-h100-8", "tp=8");
  PassTimes times(experiment, cluster_for_steps(experiment), {}, PassTimes::Precision::kEveryBatch);
  EXPECT_EQ(times.of({.groups = {generating(16, 99)}}),
            simulate_experiment(experiment, ExperimentOptions{}).runs.front().metrics.step_time);
}

// What a prefill worker with context ranks takes for a prompt is the pass of `stepsim run`.
TEST(PassTimesTest, APromptOfContextRanksIsThatOfTheRun) {
  const Experiment experiment =
      load_experiment(with_keys({.model = "llama3-8b", .cluster = "dgx-h100-8"},
                                "inference=prefill,batch=1,sequence=4096,tp=4,cp=2"));
  PassTimes times(experiment, cluster_for_steps(experiment), {}, PassTimes::Precision::kEveryBatch);
  EXPECT_EQ(times.of({.groups = {prompt(4096)}}),
            simulate_experiment(experiment, ExperimentOptions{}).runs.front().metrics.step_time);
}

}  // namespace
}  // namespace stepsim
