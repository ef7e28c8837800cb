// layout=balanced against equal stages and published layouts, simulated.

#include "experiment/bounds/fastest_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiment/build_cluster.h"
#include "experiment/finished_run.h"
#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"

namespace stepsim {
namespace {

struct Outcome {
  double step_s = 0;
  bool fits = false;
  std::vector<std::int64_t> layout;
};

Outcome outcome(const std::string& model, const std::string& cluster, const std::string& plan) {
  const Experiment experiment = load_experiment({.model = model, .cluster = cluster, .plan = plan});
  const Cluster hardware = cluster_for_steps(experiment);
  const SimulatedExperiment done = simulate_experiment(experiment, hardware);
  const SimulatedStep& run = done.runs.front();
  return {.step_s = to_seconds(run.result.step_time),
          .fits = fits({experiment, hardware, done.graph, run.options, run.result, run.metrics}),
          .layout = experiment.plan.pipeline.layout};
}

// Never slower than equal stages, and fits where they do: models without and with experts, heads
// that cost much and little, ranks of one chunk and several, schedules of all placements.
TEST(FastestLayoutTest, IsNeverWorseThanEqualStages) {
  struct Case {
    std::string model;
    std::string cluster;
    std::string plan;
  };
  const std::vector<Case> cases = {
      {"llama3-8b", "dgx-h100-8", "pp=4,tp=2,microbatch=1,global-batch=32,sequence=4096"},
      {"llama3-8b", "dgx-h100-8",
       "pp=4,tp=2,schedule=interleaved_1f1b,chunks=2,microbatch=1,global-batch=16,sequence=4096"},
      {"llama3-8b", "dgx-h100-8",
       "pp=8,schedule=interleaved_1f1b,chunks=4,microbatch=1,global-batch=32,sequence=4096"},
      {"llama3-8b", "dgx-h100-8",
       "pp=4,tp=2,schedule=zbv_hand,chunks=2,microbatch=1,global-batch=16,sequence=4096"},
      {"llama3-8b", "dgx-h100-8", "pp=4,dp=2,zero=3,microbatch=1,global-batch=32,sequence=2048"},
      {"llama3-8b", "dgx-h100-8",
       "pp=4,tp=2,schedule=gpipe,microbatch=1,global-batch=16,sequence=4096,recompute=full"},
      {"llama3.2-1b", "dgx-h100-8",
       "pp=4,dp=2,zero=1,schedule=zb_h1,microbatch=2,global-batch=64,sequence=2048"},
      {"llama3.2-1b", "dgx-h100-8",
       "pp=8,schedule=interleaved_1f1b,chunks=2,microbatch=1,global-batch=32,sequence=2048"},
      {"mixtral-8x7b", "dgx-h100-16",
       "pp=4,dp=4,ep=4,zero=1,microbatch=1,global-batch=32,sequence=2048"},
      {"mixtral-8x7b", "dgx-h100-16",
       "pp=4,dp=4,ep=4,zero=1,schedule=interleaved_1f1b,chunks=2,microbatch=1,global-batch=32,"
       "sequence=2048"},
      {"llama3-70b", "dgx-h100-64",
       "pp=8,tp=4,dp=2,zero=1,schedule=interleaved_1f1b,chunks=2,microbatch=1,global-batch=64,"
       "sequence=4096"},
      {"qwen3-30b-a3b", "dgx-h100-16",
       "pp=4,dp=4,ep=4,zero=1,microbatch=1,global-batch=32,sequence=4096,recompute=full"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.model + " " + one.plan);
    const Outcome equal = outcome(one.model, one.cluster, one.plan);
    const Outcome balanced = outcome(one.model, one.cluster, one.plan + ",layout=balanced");
    EXPECT_LE(balanced.step_s, equal.step_s);
    EXPECT_TRUE(balanced.fits || !equal.fits);
  }
}

// The layout of the recipe of Llama-3 70B (NVIDIA NeMo's performance recipes, fp8 on 64 H100): the
// last chunk of the last rank has one layer fewer, and that of the fourth one more. It may as well
// be another rank's that has one more.
TEST(FastestLayoutTest, FindsAPublishedLayoutOrABetterOne) {
  const std::string recipe =
      "tp=4,pp=8,schedule=interleaved_1f1b,chunks=5,dp=2,zero=1,microbatch=1,global-batch=128,"
      "sequence=8192,dtype=fp8";
  const Outcome published = outcome("llama3-70b", "dgx-h100-64", recipe + ",layout=2*35,3,2*3,1");
  const Outcome found = outcome("llama3-70b", "dgx-h100-64", recipe + ",layout=balanced");
  EXPECT_LE(found.step_s, published.step_s);
  EXPECT_TRUE(found.fits);
  EXPECT_EQ(found.layout.back(), published.layout.back());
  EXPECT_EQ(*std::ranges::max_element(found.layout), 3);
  EXPECT_EQ(std::ranges::count(found.layout, 3), 1);
}

}  // namespace
}  // namespace stepsim
