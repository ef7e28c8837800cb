// Passes whose routed experts are on chips of their own: who computes what, what travels, and when.

#include "schedules/lowering/split_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/inference_plan.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

// A dense block, then four with 8 experts of which a token visits 2, and a shared one.
ModelSpec mixed_model() {
  ModelSpec model = small_model(5);
  model.experts = {.routed = 8,
                   .per_token = 2,
                   .intermediate = 256,
                   .shared_intermediate = 128,
                   .first_dense = 1};
  return model;
}
constexpr std::int64_t kExpertLayers = 4;

ParallelPlan split_plan(std::int64_t dp, std::int64_t chips, std::int64_t microbatches) {
  ParallelPlan plan;
  plan.pass.inference = Inference::kDecode;
  plan.tensor.sequence_parallel = false;
  plan.mesh.dp = dp;
  plan.mesh.expert_chips = chips;
  plan.pass.pass_microbatches = microbatches;
  plan.batch.global_batch = dp * 12;
  plan.pass.context = 128;
  return plan;
}

struct SplitRun {
  OpGraph graph;
  SimulationResult result;
};

SplitRun run_of(ParallelPlan plan, const ModelSpec& model, const Cluster& cluster) {
  complete_inference(model, plan);
  const std::vector<Problem> problems = check(plan, model, cluster.places);
  EXPECT_TRUE(problems.empty()) << problems.front().field << " " << problems.front().message;
  OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
  SimulationResult result = simulate(graph, cluster, {});
  return {std::move(graph), std::move(result)};
}

Duration time_of_step(const OpGraph& graph, const Op& op, const ChipSpec& chip) {
  Duration sum;
  for (const Kernel& kernel : graph.compute_works[op.work].kernels) {
    sum += time_of(kernel, chip).total;
  }
  return sum;
}

// Times of compute ops, in order, by program.
std::array<std::vector<Duration>, 2> compute_times(const OpGraph& graph, const ChipSpec& chip) {
  std::array<std::vector<Duration>, 2> times;
  for (std::size_t program = 0; program < 2; ++program) {
    for (const Op& op : graph.programs[program].ops) {
      if (op.kind == OpKind::kCompute) times[program].push_back(time_of_step(graph, op, chip));
    }
  }
  return times;
}

std::size_t ops_on(const Program& program, const std::string& stream) {
  const auto found = std::ranges::find(program.streams, stream, &Stream::name);
  return found == program.streams.end() ? 0 : found->ops;
}

TEST(SplitPassTest, TwoKindsOfChipsRunTwoPrograms) {
  const Cluster cluster = one_node(6, 100_GBps);
  const OpGraph graph = run_of(split_plan(4, 2, 3), mixed_model(), cluster).graph;
  ASSERT_EQ(graph.programs.size(), 2U);
  EXPECT_EQ(graph.programs[0].name, "attention");
  EXPECT_EQ(graph.programs[1].name, "experts");
  for (std::size_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(graph.ranks[rank].program, ProgramId(rank < 4 ? 0 : 1));
    EXPECT_EQ(graph.ranks[rank].chip, rank);
  }
  for (const Program& program : graph.programs) {
    EXPECT_EQ(ops_on(program, "dispatch"), 3 * kExpertLayers);
    EXPECT_EQ(ops_on(program, "combine"), 3 * kExpertLayers);
  }
  EXPECT_EQ(ops_on(graph.programs[1], "compute"), 3 * kExpertLayers);
}

// Four chips send 12 tokens, of two copies, to two chips: 12 x 2 / 2 to each.
TEST(SplitPassTest, EveryCopyTravelsThereAndBack) {
  const Cluster cluster = one_node(6, 100_GBps);
  const ModelSpec model = mixed_model();
  const SplitRun run = run_of(split_plan(4, 2, 1), model, cluster);
  const Bytes token = 2 * Bytes(model.hidden);
  const ByteMatrix& there = run.graph.byte_matrices[0];
  const ByteMatrix& back = run.graph.byte_matrices[1];
  EXPECT_EQ(there.between(0, 5), 12 * token);
  EXPECT_EQ(back.between(5, 0), 12 * token);
  EXPECT_EQ(there.between(0, 1) + there.between(4, 5) + there.between(4, 0), Bytes(0));
  const auto expert = static_cast<std::size_t>(Axis::kExpert);
  EXPECT_EQ(run.result.bytes_by_axis[expert], kExpertLayers * 2 * 4 * 2 * 12 * token);
  EXPECT_EQ(run.graph.planned_bytes->at(expert), run.result.bytes_by_axis[expert]);
}

TEST(SplitPassTest, RanksThatShareExpertsGatherCopies) {
  const Cluster cluster = one_node(8, 100_GBps);
  ParallelPlan plan = split_plan(4, 4, 2);
  plan.mesh.ep = 2;
  plan.mesh.etp = 2;
  const SplitRun run = run_of(plan, mixed_model(), cluster);
  EXPECT_EQ(ops_on(run.graph.programs[1], "etp"), 2 * 2 * kExpertLayers);
  // There, to the other of the two that share, and back: 48 tokens of 2 copies each time.
  EXPECT_EQ(run.result.bytes_by_axis[static_cast<std::size_t>(Axis::kExpert)],
            kExpertLayers * 4 * 48 * 2 * Bytes(2 * 512));
  EXPECT_EQ(*run.graph.planned_bytes, run.result.bytes_by_axis);
}

TEST(SplitPassTest, TensorRanksSendTheirOwnTokens) {
  const Cluster cluster = one_node(8, 100_GBps);
  ParallelPlan plan = split_plan(2, 4, 2);
  plan.mesh.tp = 2;
  plan.tensor.sequence_parallel = true;
  const SplitRun run = run_of(plan, mixed_model(), cluster);
  EXPECT_EQ(*run.graph.planned_bytes, run.result.bytes_by_axis);
  const Bytes token = 2 * Bytes(mixed_model().hidden);
  // 6 requests of a micro-batch, 3 a rank, 2 copies over 4 chips.
  EXPECT_EQ(run.graph.byte_matrices[0].between(0, 4), Bytes(3 * 2 * token.value() / 4));
}

TEST(SplitPassTest, EachKindHoldsItsWeights) {
  const Cluster cluster = one_node(6, 100_GBps);
  const ModelSpec model = mixed_model();
  const SplitRun split = run_of(split_plan(4, 2, 2), model, cluster);
  ParallelPlan together = split_plan(1, 0, 1);
  const SplitRun whole = run_of(together, model, one_node(1, 100_GBps));
  const auto held = [](const SplitRun& run, std::size_t rank, MemoryCategory category) {
    return run.result.memory_peaks[rank].by_category[static_cast<std::size_t>(category)];
  };
  const Bytes experts(kExpertLayers * 8 * 3 * 256 * model.hidden * 2);
  const auto weights = MemoryCategory::kParameters;
  EXPECT_EQ(held(split, 5, weights), Bytes(experts.value() / 2));
  EXPECT_EQ(held(split, 0, weights), held(whole, 0, weights) - experts);
  EXPECT_EQ(held(split, 5, MemoryCategory::kCache), Bytes(0));
  EXPECT_EQ(held(split, 0, MemoryCategory::kCache), held(whole, 0, MemoryCategory::kCache));
}

// The two machines of split_pass.h by hand: V / W for each way, every kernel as long as alone.
Duration by_hand(const OpGraph& graph, const Cluster& cluster, std::size_t microbatches,
                 Duration way) {
  const auto times = compute_times(graph, cluster.chip);
  std::size_t attention_op = 0;
  std::size_t expert_op = 0;
  const auto attention = [&] { return times[0][attention_op++]; };
  Duration now = attention();  // embedding
  Duration experts_free;
  Duration there_free;
  Duration back_free;
  std::vector<Duration> back(microbatches);
  for (std::int64_t layer = 0; layer < 1 + kExpertLayers; ++layer) {
    for (Duration& returned : back) {
      now = std::max(now, returned);
      if (layer > 1) now += attention();  // behind the experts of the layer before
      now += attention();
      if (layer == 0) continue;  // dense
      there_free = std::max(there_free, now) + way;
      now += attention();  // shared experts
      experts_free = std::max(experts_free, there_free) + times[1][expert_op++];
      returned = back_free = std::max(back_free, experts_free) + way;
    }
  }
  for (const Duration returned : back) now = std::max(now, returned) + attention();
  while (attention_op < times[0].size()) now += attention();  // head
  return now;
}

TEST(SplitPassTest, TakesAsLongAsTwoMachinesByTurns) {
  const ModelSpec model = mixed_model();
  for (const Bandwidth bandwidth : {100_GBps, 2_GBps}) {
    const Cluster cluster = one_node(6, bandwidth);
    for (const std::int64_t microbatches : {1, 2, 3, 4, 6}) {
      const SplitRun run = run_of(split_plan(4, 2, microbatches), model, cluster);
      // The experts' chips are the busy ones: they get 2 copies of half of all 48 tokens.
      const Bytes busiest(4 * 12 * 2 / 2 / microbatches * 2 * model.hidden);
      const Duration hand =
          by_hand(run.graph, cluster, static_cast<std::size_t>(microbatches), busiest / bandwidth);
      EXPECT_NEAR(static_cast<double>(run.result.step_time.count()),
                  static_cast<double>(hand.count()), 1e-6 * static_cast<double>(hand.count()))
          << microbatches;
    }
  }
}

// Experts multiply the copies of all tokens, not of those that pad a tensor group's.
TEST(SplitPassTest, ExpertsMultiplyEveryCopyOnce) {
  const ModelSpec model = mixed_model();
  const auto flops = [&](ParallelPlan plan, int chips) {
    const OpGraph graph = run_of(std::move(plan), model, one_node(chips, 100_GBps)).graph;
    double sum = 0;
    for (const Op& op : graph.programs[1].ops) {
      if (op.kind != OpKind::kCompute) continue;
      for (const Kernel& kernel : graph.compute_works[op.work].kernels) {
        sum += kernel.flops.value();
      }
    }
    return sum * static_cast<double>(chips == 6 ? 2 : 4);
  };
  // 4 layers, 48 tokens of 2 copies, three matrices.
  const double all = 4.0 * 48 * 2 * 3 * 2 * 512 * 256;
  EXPECT_DOUBLE_EQ(flops(split_plan(4, 2, 1), 6), all);
  EXPECT_DOUBLE_EQ(flops(split_plan(4, 2, 5), 6), all) << "parts are unequal";
  ParallelPlan shared = split_plan(4, 4, 2);
  shared.mesh.ep = shared.mesh.etp = 2;
  EXPECT_DOUBLE_EQ(flops(shared, 8), all);
  ParallelPlan tensor = split_plan(2, 4, 8);  // 1 or 2 requests a part: half of them are padded
  tensor.mesh.tp = 2;
  tensor.tensor.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(flops(tensor, 8), all / 2);
}

// 66 chips send to 4: each has 4 messages, not one for every member.
TEST(SplitPassTest, ManyChipsSendToFewAtOnce) {
  const ModelSpec model = mixed_model();
  const auto time = [&](std::int64_t dp) {
    ParallelPlan plan = split_plan(dp, 4, 1);
    plan.batch.global_batch = dp;
    return to_seconds(
        run_of(plan, model, one_node(static_cast<int>(dp) + 4, 100_GBps, 1us)).result.step_time);
  };
  EXPECT_LT(time(66), 1.2 * time(58));
}

// In flight: copies from when they are made to when they have left, results until they are read.
TEST(SplitPassTest, WhatTravelsLiesInMemory) {
  const Cluster cluster = one_node(6, 2_GBps);
  const ModelSpec model = mixed_model();
  const auto buffers = [&](std::size_t rank) {
    const SplitRun run = run_of(split_plan(4, 2, 2), model, cluster);
    return run.result.memory_peaks[rank]
        .by_category[static_cast<std::size_t>(MemoryCategory::kBuffers)];
  };
  const Bytes copies(4 * 6 * 2 / 2 * 2 * model.hidden);  // of a part, on a chip of experts
  EXPECT_GE(buffers(5), 2 * copies) << "one part computes, the other one arrives";
}

TEST(SplitPassTest, MicrobatchesDivideRequestsOrPrompts) {
  const RequestBatch decodes{.groups = {{.sequences = 5, .cached = 9, .generates = true}}};
  const std::vector<RequestBatch> two = microbatches_of(decodes, 2);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].tokens(), 2);
  EXPECT_EQ(two[1].tokens(), 3);
  EXPECT_EQ(microbatches_of(decodes, 8).size(), 5U) << "none is empty";

  const RequestBatch prompt{.groups = {{.queries = 100, .cached = 7}}};
  const std::vector<RequestBatch> parts = microbatches_of(prompt, 3);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].groups[0], (RequestGroup{.queries = 33, .cached = 7}));
  EXPECT_EQ(parts[1].groups[0], (RequestGroup{.queries = 33, .cached = 40}));
  EXPECT_EQ(parts[2].groups[0], (RequestGroup{.queries = 34, .cached = 73}));

  // What does not divide is on different parts.
  const RequestBatch mixed{
      .groups = {{.sequences = 3, .cached = 9, .generates = true}, {.sequences = 3, .queries = 7}}};
  const std::vector<RequestBatch> halves = microbatches_of(mixed, 2);
  ASSERT_EQ(halves.size(), 2U);
  EXPECT_EQ(halves[0].tokens(), 1 + 3 * 4);
  EXPECT_EQ(halves[1].tokens(), 2 + 3 * 3);
}

TEST(SplitPassTest, RefusesWhatItDoesNotModel) {
  const auto fields = [](ParallelPlan plan, const ModelSpec& model) {
    complete_inference(model, plan);
    plan.mesh.allow_idle_chips = true;
    std::vector<std::string> named;
    for (const Problem& problem : check(plan, model, one_node(8, 100_GBps).places)) {
      named.push_back(problem.field);
    }
    std::ranges::sort(named);
    return named;
  };
  using Fields = std::vector<std::string>;
  const ModelSpec model = mixed_model();
  EXPECT_EQ(fields(split_plan(4, 4, 2), model), Fields{});
  EXPECT_EQ(fields(split_plan(4, 4, 2), small_model()), Fields{"ffn_chips"});
  EXPECT_EQ(fields(split_plan(4, 3, 2), model), Fields{"ep"});
  ParallelPlan whole = split_plan(4, 0, 2);
  EXPECT_EQ(fields(whole, model), Fields{"pass_microbatches"});
  ParallelPlan plan = split_plan(2, 4, 1);
  plan.experts.dispatch = Dispatch::kTwoLevel;
  plan.launches.host_launch_cost = 5us;
  plan.mesh.tp = 2;
  EXPECT_EQ(fields(plan, model), (Fields{"dispatch", "host_launch_cost", "sequence_parallel"}));
  ParallelPlan training = split_plan(4, 4, 2);
  training.pass.inference = Inference::kNone;
  training.batch.sequence = 128;
  training.pass.context = 0;
  training.batch.global_batch = 4;
  training.mesh.ep = 4;
  EXPECT_EQ(fields(training, model), Fields{"ffn_chips"});
  ModelSpec skewed = model;
  skewed.experts.load = {2, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(fields(split_plan(4, 4, 1), skewed), Fields{"ffn_chips"});
}

}  // namespace
}  // namespace stepsim
