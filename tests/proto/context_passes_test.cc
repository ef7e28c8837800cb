// Passes of inference whose prompts context ranks divide, against closed forms.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"
#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/inference_plan.h"
#include "sim/hardware/chip_route.h"
#include "tests/support/layer_ops.h"
#include "workload/inference.h"

namespace stepsim {
namespace {

constexpr std::int64_t kRanks = 4;

// Four nodes with a context rank of eight chips each, whose collectives hold nothing.
Experiment dividing(const std::string& keys, const std::string& model = "llama3-8b") {
  return load_experiment(with_keys({.model = model, .cluster = "dgx-h100-32", .library = "ideal"},
                                   "inference=prefill,cp=4,batch=1," + keys));
}

struct Ring {
  std::vector<double> parts;  // seconds of attention with each part of the keys
  double hop = 0;
};

// A hop goes over a card of 50 GB/s for each chip.
Ring ring_of(const Experiment& experiment, const Cluster& cluster, std::int64_t rank = 0) {
  const ModelLayers layers =
      inference_layers(experiment.model, shard_of(experiment.plan, {.context_rank = rank}),
                       requests_of(experiment.plan));
  const std::vector<LayerOp>& ops = layers.blocks.front().ops;
  const LayerOp& attention = *std::ranges::find(ops, "attention", text_of_op);
  Ring ring;
  for (const std::vector<Kernel>& kernels : attention.pass.parts) {
    Duration sum;
    for (const Kernel& kernel : kernels) sum += time_of(kernel, cluster.chip).total;
    ring.parts.push_back(to_seconds(sum));
  }
  std::vector<LinkId> links;
  ring.hop = to_seconds(route_of(cluster, 0, 8, links)) +
             static_cast<double>(attention.pass.handed_round.value()) / 50e9;
  return ring;
}

// With hops one behind the other, and attention on what has come: it ends when the last of the
// parts from i on has been computed behind hop i.
double seconds_of(const Ring& ring) {
  double longest = 0;
  double behind = 0;
  for (std::size_t i = ring.parts.size(); i-- > 0;) {
    behind += ring.parts[i];
    longest = std::max(longest, static_cast<double>(i) * ring.hop + behind);
  }
  return longest;
}

double sum_of(const std::vector<double>& parts) {
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

TEST(ContextPassesTest, ARingTakesTheLongerOfAttentionAndHops) {
  bool waits = false;
  bool hides = false;
  const std::string one_a_node = "tp=1,chips_per_domain=1,allow_idle_chips=true,";
  // Every head of llama2-13b has keys and values of its own: a hop with them takes longer than the
  // attention that hides it.
  using Case = std::tuple<std::string, std::string, std::string>;
  for (const auto& [model, tokens, chips] :
       {Case{"llama2-13b", "2048", one_a_node}, Case{"llama3-8b", "512", one_a_node},
        Case{"llama3-8b", "2048", one_a_node}, Case{"llama3-8b", "16384", one_a_node},
        Case{"llama3-8b", "4096", "tp=8,"}, Case{"llama3-8b", "65536", "tp=8,"}}) {
    const Experiment experiment = dividing(chips + "cp_mode=zigzag_ring,sequence=" + tokens, model);
    const Cluster cluster = cluster_for_steps(experiment);
    const Ring ring = ring_of(experiment, cluster);
    const SimulatedExperiment done = simulate_experiment(experiment, cluster, {});
    const Breakdown& rank = done.runs.front().result.breakdowns.front();
    const double exposed =
        to_seconds(rank.exposed_communication[static_cast<std::size_t>(Axis::kContext)]);
    const double expected =
        static_cast<double>(experiment.model.layers) * (seconds_of(ring) - sum_of(ring.parts));
    EXPECT_NEAR(exposed, expected, 1e-9) << tokens;
    waits = waits || expected > 1e-6;
    hides = hides || expected < 1e-12;
  }
  EXPECT_TRUE(waits);
  EXPECT_TRUE(hides);
}

// With one stretch of the prompt each, the last rank scores 3 1/2 of 4 parts and decides; with two
// all ranks score two.
TEST(ContextPassesTest, TwoStretchesOfAPromptBalanceTheRanks) {
  const auto step = [](const std::string& mode) {
    const Experiment experiment = dividing("tp=8,sequence=131072,cp_mode=" + mode);
    const Cluster cluster = cluster_for_steps(experiment);
    const double seconds =
        to_seconds(simulate_experiment(experiment, cluster, {}).runs.front().result.step_time);
    return std::pair(seconds, sum_of(ring_of(experiment, cluster, kRanks - 1).parts));
  };
  const auto [zigzag, even] = step("zigzag_ring");
  const auto [ring, last] = step("ring");
  const double layers = 32;
  EXPECT_NEAR(last / even, 3.5 / 2, 0.03);
  EXPECT_NEAR((ring - zigzag) / (layers * (last - even)), 1, 0.02);
}

// n - 1 hops of a share, or a gather of all shares: the same bytes.
TEST(ContextPassesTest, ARingSendsWhatAGatherSends) {
  const auto bytes = [](const std::string& keys) {
    const Experiment experiment = dividing(keys);
    const SimulatedExperiment done = simulate_experiment(experiment, ExperimentOptions{});
    return done.graph.planned_bytes->at(static_cast<std::size_t>(Axis::kContext));
  };
  // 3 of 4 shares of 4,096 tokens arrive at each of 32 chips, a key-value head of 2 x 128 values of
  // two bytes on 32 layers.
  const Bytes expected(32 * (4 - 1) * (4096 / 4) * 2 * 128 * 2 * std::int64_t{32});
  for (const std::string mode : {"all_gather", "zigzag_ring", "ring"}) {
    EXPECT_EQ(bytes("tp=8,sequence=4096,cp_mode=" + mode), expected) << mode;
  }
}

TEST(ContextPassesTest, HeadsAreNotSwitched) {
  try {
    dividing("tp=2,sequence=4096,cp_mode=ulysses");
    FAIL();
  } catch (const ConfigError& error) {
    const std::vector<Problem>& problems = error.problems();
    const auto mode = std::ranges::find(problems, "plan.cp_mode", &Problem::field);
    ASSERT_NE(mode, problems.end());
    EXPECT_EQ(mode->message,
              "is ulysses, but in inference context ranks gather keys and values or pass them "
              "round: all_gather, zigzag_ring or ring");
  }
}

}  // namespace
}  // namespace stepsim
