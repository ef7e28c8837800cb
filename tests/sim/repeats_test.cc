// Runs that skip periods in which they would only repeat themselves, against runs that don't:
// pipelines, FSDP, and programs of which one op in the middle is different.

#include "sim/run/repeats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"
#include "tests/fuzz/input_on_disk.h"
#include "tests/fuzz/random/folding_laws.h"

namespace stepsim {
namespace {

LoadedExperiment load_plan(const std::string& plan) {
  const InputOnDisk file(
      R"({"model": {"catalog": "llama3-8b"}, "cluster": {"catalog": "dgx-h100-8"},
    "plan": {"sequence": 2048, )" +
          plan + "}}",
      ".json");
  return load_with_topology({.experiment = file.path()});
}

struct RepeatedPlan {
  std::string name;
  std::string plan;
  double least_share = 0;  // of the ops, that is not simulated
  friend void PrintTo(const RepeatedPlan& plan, std::ostream* out) { *out << plan.name; }
};

class RepeatsTest : public testing::TestWithParam<RepeatedPlan> {};

TEST_P(RepeatsTest, SkippedPeriodsChangeNothing) {
  const LoadedExperiment loaded = load_plan(GetParam().plan);
  std::uint64_t skipped = 0;
  EXPECT_EQ(broken_repeats(loaded, skipped), "");
  const SimulatedExperiment all = simulate_experiment(loaded.experiment);
  const SimulatorStatistics& statistics = all.runs.front().result.statistics;
  EXPECT_EQ(statistics.repeated_ops, skipped);
  EXPECT_GT(static_cast<double>(skipped),
            GetParam().least_share * static_cast<double>(statistics.ops));
}

INSTANTIATE_TEST_SUITE_P(
    Plans, RepeatsTest,
    testing::Values(
        RepeatedPlan{"one_forward_one_backward", R"("tp": 2, "pp": 4, "global_batch": 256)", 0.8},
        RepeatedPlan{"replicas", R"("dp": 2, "pp": 4, "zero": 1, "global_batch": 256)", 0.5},
        RepeatedPlan{"zero_2", R"("dp": 4, "pp": 2, "zero": 2, "global_batch": 256)", 0.5},
        RepeatedPlan{"fsdp", R"("dp": 8, "zero": 3, "global_batch": 512)", 0.5},
        RepeatedPlan{
            "interleaved",
            R"("tp": 2, "pp": 4, "schedule": "interleaved_1f1b", "chunks": 2, "global_batch": 256)",
            0.5},
        RepeatedPlan{
            "zero_bubble_v",
            R"("tp": 2, "pp": 4, "schedule": "zbv_hand", "chunks": 2, "global_batch": 256)", 0.5}),
    [](const auto& test) { return test.param.name; });

struct Lowered {
  LoadedExperiment loaded = load_plan(R"("tp": 2, "pp": 4, "global_batch": 256)");
  Cluster cluster = cluster_for_steps(loaded.experiment);
  OpGraph graph = lower_experiment(loaded.experiment, cluster);

  // The op of a stage's compute stream behind `share` of the others.
  Op& compute_op(std::size_t stage, double share) {
    return graph.programs[stage].ops[number(stage, share)];
  }
  std::uint32_t number(std::size_t stage, double share) const {
    const Program& program = graph.programs[stage];
    const Stream& compute = *std::ranges::find(program.streams, true, &Stream::computes);
    return compute.first_op + static_cast<std::uint32_t>(share * compute.ops);
  }
  SimulationResult simulated(bool repeats) const {
    return simulate(graph, cluster, {.fold = true, .repeats = repeats});
  }
};

void expect_equal(const SimulationResult& some, const SimulationResult& all) {
  EXPECT_EQ(some.end, all.end);
  EXPECT_EQ(some.breakdowns, all.breakdowns);
  for (std::size_t rank = 0; rank < all.memory_peaks.size(); ++rank) {
    EXPECT_EQ(some.memory_peaks[rank].bytes, all.memory_peaks[rank].bytes);
    EXPECT_EQ(some.memory_peaks[rank].at, all.memory_peaks[rank].at);
  }
  for (std::size_t link = 0; link < all.links.size(); ++link) {
    EXPECT_EQ(some.links[link].bytes, all.links[link].bytes);
  }
}

// The embedding of the next micro-batch is gathered in the instant in which the last one ends. A
// skip there must not make two instants of it: what is gathered and what is let go never lay in
// memory together.
TEST(RepeatsTest, ASkipDoesNotCutAnInstantInTwo) {
  const InputOnDisk file(R"({
    "model": {"name": "small", "layers": 2, "hidden": 128, "intermediate": 96, "heads": 1,
              "kv_heads": 1, "head_dim": 64, "vocabulary": 32000, "learned_positions": 32,
              "gated_mlp": false, "head_projection": true, "causal": false},
    "cluster": {"name": "pairs",
      "chip": {"name": "made", "peak": [{"type": "bf16", "throughput": "100TFLOPS"},
                                        {"type": "fp32", "throughput": "20TFLOPS"},
                                        {"type": "fp8", "throughput": "200TFLOPS"}],
               "memory_bandwidth": "1TB/s", "memory_capacity": "80GB", "launch_overhead": "2us"},
      "dragonfly": {"hosts_per_router": 2, "routers_per_group": 1, "global_links_per_router": 2,
                    "groups": 2, "host_bandwidth": "25GB/s", "local_bandwidth": "900GB/s",
                    "global_bandwidth": "50GB/s", "local_latency": "10us",
                    "global_latency": "0s"}},
    "plan": {"dp": 2, "pp": 2, "global_batch": 96, "sequence": 32, "order": "pp-cp-dp-tp",
             "layout": "1*2", "zero": 3, "dtype": "fp32", "current_scaling": true,
             "round_weights": true, "metric_losses": 2, "lora_rank": 64, "optimizer_bytes": 6,
             "gradient_bytes": 2},
    "simulation": {"fidelity": ["latency-bandwidth"]}})",
                         ".json");
  std::uint64_t skipped = 0;
  EXPECT_EQ(broken_repeats(load_with_topology({.experiment = file.path()}), skipped), "");
  EXPECT_GT(skipped, 1000U);
}

TEST(RepeatsTest, OneOpThatTakesLongerIsNotSkipped) {
  Lowered changed;
  const SimulationResult before = changed.simulated(true);
  Op& op = changed.compute_op(2, 0.6);
  const auto longest = std::ranges::max_element(
      changed.graph.compute_works, {}, [](const ComputeWork& work) { return work.kernels.size(); });
  changed.graph.compute_works.push_back(*longest);
  ComputeWork& work = changed.graph.compute_works.back();
  for (int i = 0; i < 30; ++i)
    work.kernels.insert(work.kernels.end(), longest->kernels.begin(), longest->kernels.end());
  op.work = static_cast<std::uint32_t>(changed.graph.compute_works.size() - 1);
  const SimulationResult some = changed.simulated(true);
  const SimulationResult all = changed.simulated(false);
  expect_equal(some, all);
  EXPECT_GT(some.end, before.end);
  EXPECT_GT(some.statistics.repeated_ops, 0U);
  EXPECT_EQ(all.statistics.repeated_ops, 0U);
}

TEST(RepeatsTest, OneOpThatHoldsMoreMemoryIsNotSkipped) {
  Lowered changed;
  Program& program = changed.graph.programs[1];
  const std::uint32_t op = changed.number(1, 0.6);
  const Bytes before = changed.simulated(true).memory_peaks[2].bytes;
  const std::uint32_t begin = program.ops[op - 1].memory_end;
  program.memory_changes.insert(
      program.memory_changes.begin() + begin,
      {{.category = MemoryCategory::kBuffers, .at_end = false, .bytes = Bytes(70'000'000'000)},
       {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = Bytes(70'000'000'000)}});
  for (std::uint32_t later = op; later < program.ops.size(); ++later) {
    program.ops[later].memory_end += 2;
  }
  const SimulationResult some = changed.simulated(true);
  expect_equal(some, changed.simulated(false));
  EXPECT_GT(some.memory_peaks[2].bytes, before);
  EXPECT_GT(some.statistics.repeated_ops, 0U);
}

TEST(RepeatsTest, ALimitHoldsForTimeThatIsSkipped) {
  const Lowered lowered;
  const Duration step = lowered.simulated(false).step_time;
  SimulationOptions options{.fold = true, .repeats = true, .limit = StepLimit{.most = step}};
  const SimulationResult within = simulate(lowered.graph, lowered.cluster, options);
  EXPECT_EQ(within.step_time, step);
  EXPECT_GT(within.statistics.repeated_ops, 0U);
  for (const std::int64_t tenths : {1, 5, 9}) {
    options.limit->most = step * tenths / 10;
    EXPECT_THROW(simulate(lowered.graph, lowered.cluster, options), StepTooLong) << tenths;
  }
  options.limit->most = step - Duration(1);
  EXPECT_THROW(simulate(lowered.graph, lowered.cluster, options), StepTooLong);
}

TEST(RepeatsTest, WhatIsRecordedIsSimulated) {
  const Lowered lowered;
  SimulationOptions options{.recorded_ranks = {RankId(3)}, .fold = true, .repeats = true};
  EXPECT_EQ(simulate(lowered.graph, lowered.cluster, options).statistics.repeated_ops, 0U);
  options = {.record_links = true, .fold = true, .repeats = true};
  EXPECT_EQ(simulate(lowered.graph, lowered.cluster, options).statistics.repeated_ops, 0U);
}

TEST(RepeatsTest, WithoutAPathTheRestIsTheSame) {
  const Lowered lowered;
  const SimulationResult some = simulate(lowered.graph, lowered.cluster,
                                         {.fold = true, .repeats = true, .critical_path = false});
  expect_equal(some, lowered.simulated(false));
  EXPECT_TRUE(some.critical_path.empty());
}

}  // namespace
}  // namespace stepsim
