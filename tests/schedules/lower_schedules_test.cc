// Every pipeline schedule through lowering: which ops run and when, and what ranks hold and send.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiment/pipeline_times.h"
#include "schedules/lowering/lower.h"
#include "schedules/lowering/steps/tensor.h"
#include "schedules/pipeline/published/published_schedule.h"
#include "schedules/pipeline/replay/posted_replay.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/schedule_file.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"
#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr std::int64_t kStages = 4;
constexpr std::int64_t kMicrobatches = 8;

// Eight blocks: two per rank, or one per chunk if there are two chunks.
ModelSpec model() {
  return small_model(2 * kStages);
}

ParallelPlan plan_of(ScheduleName schedule, std::int64_t tp = 1, std::int64_t dp = 1) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.mesh.dp = dp;
  plan.mesh.pp = kStages;
  plan.batch.global_batch = dp * (schedule == ScheduleName::kNaive ? 1 : kMicrobatches);
  plan.batch.sequence = 256;
  plan.messages.gradient_bucket_parameters = 1'000'000;
  plan.pipeline.schedule = schedule;
  return plan;
}

Cluster cluster_for(const ParallelPlan& plan, Bandwidth bandwidth = 100_GBps) {
  return one_node(static_cast<int>(plan.mesh.ranks()), bandwidth);
}

// FSDP reduces layer by layer.
void divide(ParallelPlan& plan, int zero) {
  plan.state.zero = zero;
  if (zero == 3)
    plan.messages.gradient_bucket_parameters = ParallelPlan{}.messages.gradient_bucket_parameters;
}

SimulationResult run(const ModelSpec& spec, const ParallelPlan& plan, const Cluster& cluster,
                     const SimulationOptions& options = {}) {
  for (const Problem& problem : check(plan, spec, cluster.places)) {
    ADD_FAILURE() << name_of(plan.pipeline.schedule) << " " << problem.field << ": "
                  << problem.message;
  }
  return simulate(lower(spec, plan, cluster.places, cluster.chip, {}), cluster, options);
}

bool is_bidirectional(const ParallelPlan& plan) {
  return placement_of(plan.pipeline) == Placement::kBidirectional;
}

// With every product of axes every schedule runs to its end, sends what planned_bytes() says, frees
// what it allocates and adds up (all always-on checks). It computes the same FLOPs as 1F1B.
TEST(LowerSchedulesTest, AnyScheduleDoesTheSameWorkWithAnyPlan) {
  for (const ScheduleName schedule : all_schedules()) {
    for (const std::int64_t tp : {1, 2}) {
      for (const std::int64_t dp : {1, 2}) {
        for (const int zero : {0, 1, 2, 3}) {
          ParallelPlan plan = plan_of(schedule, tp, dp);
          divide(plan, zero);
          plan.recomputing.kind = dp == 2 ? Recompute::kFull : Recompute::kNone;
          plan.tensor.sequence_parallel = zero != 1;
          plan.overlap.pipeline = zero != 1;
          plan.messages.scatter_messages = true;
          if (zero == 3 && (is_bidirectional(plan) || schedule == ScheduleName::kDualPipeV)) {
            EXPECT_FALSE(check_schedule(plan).empty());
            continue;
          }
          const Cluster cluster = cluster_for(plan);
          const SimulationResult result = run(model(), plan, cluster, {.steps = 2});
          ParallelPlan simple = plan;
          simple.pipeline.schedule = ScheduleName::kOneForwardOneBackward;
          simple.overlap.pipeline = true;
          // Adam's work is divided by the replicas, of which there are twice as many with copies.
          const double adam = is_bidirectional(plan) && zero == 0 ? 15 * 2e8 : 1;
          EXPECT_NEAR(result.flops.value(), run(model(), simple, cluster).flops.value(), adam)
              << name_of(schedule) << " tp " << tp << " dp " << dp << " zero " << zero;
        }
      }
    }
  }
}

// Embeddings have their gradient with B, other layers with W; a table may be read on another rank.
// Each is reduced once for every micro-batch, and over the groups of hybrid sharding once a step.
TEST(LowerSchedulesTest, GradientsAreReducedOnceHoweverTheBackwardIsSplit) {
  std::vector<ModelSpec> models = {model(), model(), model()};
  models[1].embedding.tied = true;
  models[2].prediction.modules = 1;
  for (const ModelSpec& each : models) {
    for (const ScheduleName schedule :
         {ScheduleName::kOneForwardOneBackward, ScheduleName::kZeroBubbleH1,
          ScheduleName::kZeroBubbleVHand, ScheduleName::kVMin, ScheduleName::kDualPipe}) {
      for (const int zero : {1, 2, 3}) {
        for (const std::int64_t shard : {0, 2}) {
          ParallelPlan plan = plan_of(schedule, 1, 4);
          divide(plan, zero);
          if (shard > 0) plan.state.shard = shard;
          const Cluster cluster = cluster_for(plan);
          if (!check(plan, each, cluster.places).empty()) continue;
          EXPECT_GT(run(each, plan, cluster).step_time, Duration(0));
        }
      }
    }
  }
}

// Returns the times of the parts of each global stage on the ideal chip.
std::vector<PipelineCosts> costs_of_stages(const ParallelPlan& plan, const ChipSpec& chip) {
  const ModelSpec spec = model();
  const ModelLayers layers = build_layers(spec, {.sequences = 1, .sequence_length = 256});
  const auto lowered = [&](const Layer& layer, bool is_last) {
    return lower_tensor(layer, tensor_group(plan), layers.tensor_boundary, is_last);
  };
  const auto time = [&](const std::vector<Kernel>& kernels) {
    Duration sum{};
    for (const Kernel& kernel : kernels) sum += time_of(kernel, chip).total;
    return sum.count();
  };
  std::vector<PipelineCosts> costs;
  const std::vector<std::int64_t> blocks = layers_of_stages(plan, spec.layers);
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    PipelineCosts& of = costs.emplace_back(PipelineCosts{0, 0, 0, 0});
    const auto add = [&](const LoweredLayer& layer, std::int64_t count) {
      for (const LayerStep& step : layer.forward) of.forward += count * time(step.kernels);
      for (const LayerStep& step : layer.split_backward) {
        (step.weight_gradient ? of.backward_weight : of.backward_input) +=
            count * time(step.kernels);
      }
    };
    if (stage == 0) add(lowered(layers.embedding, false), 1);
    add(lowered(layers.blocks[0], false), blocks[stage]);
    if (stage + 1 == blocks.size()) add(lowered(layers.head, true), 1);
  }
  return costs;
}

// Returns the end of the last compute op, without the optimizers.
Duration end_of_passes(const OpGraph& graph, const SimulationResult& result) {
  Time end;
  for (const Timeline& timeline : result.timelines) {
    const Program& program = graph.programs[graph.ranks[timeline.rank.index()].program.index()];
    for (const TimelineOp& op : timeline.ops) {
      if (program.ops[op.op].kind != OpKind::kCompute) continue;
      if (program.labels[op.op].microbatch) end = std::max(end, op.ended);
    }
  }
  return end.since_start;
}

// If messages are free, a step takes exactly the time that replay() gives for the times of the
// model's own kernels, stage by stage. Embedding and head make the stages uneven.
TEST(LowerSchedulesTest, PassesTakeWhatTheReplayOfTheirTimesTakes) {
  for (const ScheduleName schedule : all_schedules()) {
    const ParallelPlan plan = plan_of(schedule);
    const Cluster cluster = cluster_for(plan, Bandwidth(1e30));
    const OpGraph graph = lower(model(), plan, cluster.places, cluster.chip, {});
    SimulationOptions options;
    for (std::uint32_t rank = 0; rank < kStages; ++rank) options.recorded_ranks.emplace_back(rank);
    const SimulationResult result = simulate(graph, cluster, options);
    const PipelineReplay expected =
        replay(schedule_of(plan, {}), costs_of_stages(plan, cluster.chip));
    EXPECT_EQ(end_of_passes(graph, result).count(), expected.makespan) << name_of(schedule);
  }
}

// The same in batches, with messages as long as some passes: the time of replay_posted().
TEST(LowerSchedulesTest, BatchesTakeWhatTheirReplayTakes) {
  for (const ScheduleName schedule : all_schedules()) {
    ParallelPlan plan = plan_of(schedule);
    plan.messages.batch_p2p = true;
    const Cluster cluster = one_node(kStages, Bandwidth(1e30), 10us);  // two links a message
    const OpGraph graph = lower(model(), plan, cluster.places, cluster.chip, {});
    SimulationOptions options;
    for (std::uint32_t rank = 0; rank < kStages; ++rank) options.recorded_ranks.emplace_back(rank);
    const SimulationResult result = simulate(graph, cluster, options);
    const PipelineSchedule order = schedule_of(plan, {});
    std::vector<PipelineCosts> costs = costs_of_stages(plan, cluster.chip);
    for (PipelineCosts& of : costs) of.send = Duration(20us).count();
    const Posting posting = posting_rule(plan)->post(order, PipelineCosts{});
    EXPECT_EQ(end_of_passes(graph, result).count(), replay_posted(order, costs, posting).makespan)
        << name_of(schedule);
  }
}

// Batches change when messages go, but not what is computed, sent and held at the end (always-on
// checks), in every mesh.
TEST(LowerSchedulesTest, BatchesRunWithAnyPlan) {
  for (const ScheduleName schedule : all_schedules()) {
    for (const int zero : {0, 2, 3}) {
      ParallelPlan plan = plan_of(schedule, 2, 2);
      plan.state.zero = zero;
      plan.messages.batch_p2p = true;
      if (zero == 3)
        plan.messages.gradient_bucket_parameters =
            ParallelPlan{}.messages.gradient_bucket_parameters;
      if (!check_schedule(plan).empty()) continue;
      ParallelPlan alone = plan;
      alone.messages.batch_p2p = false;
      const Cluster cluster = cluster_for(plan);
      const SimulationResult result = run(model(), plan, cluster, {.steps = 2});
      EXPECT_EQ(result.flops, run(model(), alone, cluster, {.steps = 2}).flops);
    }
  }
}

// Both directions of chimera are timed for batches that are planned by times, also if the two
// copies of a stage sum their gradients after each micro-batch.
TEST(LowerSchedulesTest, TimesOfTwoDirectionsAreThoseOfAStage) {
  for (const int zero : {0, 2}) {
    ParallelPlan plan = plan_of(ScheduleName::kChimera);
    plan.state.zero = zero;
    plan.messages.batch_p2p = true;
    const Cluster cluster = cluster_for(plan);
    EXPECT_EQ(pipeline_times(model(), plan, cluster).forward,
              costs_of_stages(plan, cluster.chip)[1].forward / 1000);
  }
}

TEST(LowerSchedulesTest, BatchesNeedSomebodyToSendTo) {
  ParallelPlan plan = plan_of(ScheduleName::kOneForwardOneBackward);
  plan.messages.batch_p2p = true;
  plan.overlap.pipeline = false;
  EXPECT_EQ(check_schedule(plan).size(), 1U);
  plan.overlap.pipeline = true;
  EXPECT_TRUE(check_schedule(plan).empty());
  plan.mesh.pp = 1;
  EXPECT_EQ(check_schedule(plan).size(), 1U);
}

// Schedules that are planned by times get the times of the model's own kernels (the median stage
// has no embedding and no head), and the time of a boundary over the link with its two latencies.
TEST(LowerSchedulesTest, TimesAreThoseOfTheModelsKernels) {
  for (const ScheduleName schedule :
       {ScheduleName::kZeroBubbleAuto1P, ScheduleName::kZeroBubbleVAuto}) {
    const ParallelPlan plan = plan_of(schedule);
    const Cluster cluster = one_node(kStages, 100_GBps, 500ns);
    const PipelineCosts costs = pipeline_times(model(), plan, cluster);
    const std::vector<PipelineCosts> stages = costs_of_stages(plan, cluster.chip);
    EXPECT_EQ(costs.forward, stages[1].forward / 1000);
    EXPECT_EQ(costs.backward_input, stages[1].backward_input / 1000);
    EXPECT_EQ(costs.backward_weight, stages[1].backward_weight / 1000);
    EXPECT_EQ(costs.send, 1000 + 256 * 512 * 2 / 100);
  }
  EXPECT_EQ(pipeline_times(model(), plan_of(ScheduleName::kZeroBubbleH1), one_node(4, 1_GBps)).send,
            0);
}

// Returns the most that a rank holds after any op of its list: whole micro-batches until B or BW,
// and after B what W reads.
Bytes most_held(const PipelineSchedule& schedule, std::int32_t rank, Bytes saved,
                Bytes for_weights) {
  Bytes held;
  Bytes most;
  for (const PipelineOp& op : schedule.ranks[static_cast<std::size_t>(rank)]) {
    if (op.kind == PipelineOpKind::kForward) held += saved;
    if (op.kind == PipelineOpKind::kBackwardInput) held += for_weights - saved;
    if (op.kind == PipelineOpKind::kBackwardWeight) held -= for_weights;
    if (op.kind == PipelineOpKind::kBackward) held -= saved;
    most = std::max(most, held);
  }
  return most;
}

// Activations in flight on a rank without embedding and head. With whole backwards there are as
// many chunks as replay() counts, each with the bytes that its blocks keep. With B and W there is
// also what W reads, and at most one more chunk while B makes it.
TEST(LowerSchedulesTest, ActivationsAreThoseInFlight) {
  const ModelLayers layers = build_layers(model(), {.sequences = 1, .sequence_length = 256});
  const auto activations = static_cast<std::size_t>(MemoryCategory::kActivations);
  for (const ScheduleName schedule : all_schedules()) {
    const ParallelPlan plan = plan_of(schedule);
    const LoweredLayer block =
        lower_tensor(layers.blocks[0], tensor_group(plan), layers.tensor_boundary, false);
    Bytes for_weights = layers.blocks[0].saved();
    for (const LayerStep& step : block.split_backward) {
      if (step.weight_gradient) continue;
      for_weights += step.kept;
      for_weights -= step.let_go;
    }
    const std::int64_t blocks = 2 * kStages / stages_of(plan);
    const SimulationResult result = run(model(), plan, cluster_for(plan));
    const PipelineSchedule order = schedule_of(plan, {});
    const PipelineReplay replayed = replay(order, PipelineCosts{});
    const auto has = [&](PipelineOpKind kind) {
      return std::ranges::any_of(order.ranks[1],
                                 [&](const PipelineOp& op) { return op.kind == kind; });
    };
    for (const std::int32_t rank : {1, 2}) {
      const Bytes peak =
          result.memory_peaks[static_cast<std::size_t>(rank)].by_category[activations];
      const Bytes saved = blocks * layers.blocks[0].saved();
      const std::int64_t in_flight = replayed.peak_in_flight[static_cast<std::size_t>(rank)];
      if (has(PipelineOpKind::kForwardBackward)) {
        EXPECT_LE(peak, in_flight * std::max(saved, blocks * for_weights)) << name_of(schedule);
        EXPECT_GE(peak, (in_flight - 1) * saved) << name_of(schedule);
      } else if (has(PipelineOpKind::kBackwardInput)) {
        const Bytes expected = most_held(order, rank, saved, blocks * for_weights);
        EXPECT_GE(peak, expected) << name_of(schedule);
        EXPECT_LE(peak, expected + saved) << name_of(schedule);
      } else {
        EXPECT_EQ(peak, in_flight * saved) << name_of(schedule);
      }
    }
  }
}

// Two copies: each middle rank holds the parameters of two stages, and the gradients of both are
// summed by pairs of ranks: an all-reduce of two sends the whole gradient once from each.
TEST(LowerSchedulesTest, CopiesOfAStageAreReplicas) {
  for (const ScheduleName schedule : {ScheduleName::kDualPipe, ScheduleName::kChimera}) {
    const ParallelPlan plan = plan_of(schedule);
    const Cluster cluster = cluster_for(plan);
    const OpGraph graph = lower(model(), plan, cluster.places, cluster.chip, {});
    const ModelLayers layers = build_layers(model(), {.sequences = 1, .sequence_length = 256});
    const auto parameters = static_cast<std::size_t>(MemoryCategory::kParameters);
    EXPECT_EQ(graph.programs[1].resident[parameters].value(),
              2 * 4 * layers.blocks[0].parameters());
    const SimulationResult result = simulate(graph, cluster, {});
    EXPECT_EQ(result.bytes_by_axis[static_cast<std::size_t>(Axis::kData)].value(),
              2 * 4 * parameter_count(model()));
  }
}

// Boundaries between ranks: a loop of two chunks on 4 ranks has 7, a V has 6 (its turn is on one
// rank), a bidirectional pipeline 3.
TEST(LowerSchedulesTest, MessagesCrossTheBoundariesBetweenRanks) {
  const std::pair<ScheduleName, std::int64_t> cases[] = {{ScheduleName::kInterleaved, 7},
                                                         {ScheduleName::kZeroBubbleVHand, 6},
                                                         {ScheduleName::kDualPipe, 3}};
  for (const auto& [schedule, boundaries] : cases) {
    const ParallelPlan plan = plan_of(schedule);
    const SimulationResult result = run(model(), plan, cluster_for(plan));
    EXPECT_EQ(result.bytes_by_axis[static_cast<std::size_t>(Axis::kPipeline)].value(),
              2 * boundaries * kMicrobatches * 256 * 512 * 2)
        << name_of(schedule);
  }
}

// Tensor ranks that hold whole activations send a share each, and gather what arrives.
TEST(LowerSchedulesTest, TensorRanksDivideMessages) {
  ParallelPlan plan = plan_of(ScheduleName::kOneForwardOneBackward, 2);
  plan.tensor.sequence_parallel = false;
  const auto bytes = [](const SimulationResult& result, Axis axis) {
    return result.bytes_by_axis[static_cast<std::size_t>(axis)].value();
  };
  const SimulationResult whole = run(model(), plan, cluster_for(plan));
  plan.messages.scatter_messages = true;
  const SimulationResult shares = run(model(), plan, cluster_for(plan));
  EXPECT_EQ(2 * bytes(shares, Axis::kPipeline), bytes(whole, Axis::kPipeline));
  EXPECT_EQ(bytes(shares, Axis::kTensor) - bytes(whole, Axis::kTensor),
            bytes(shares, Axis::kPipeline));
  plan.tensor.sequence_parallel = true;
  const SimulationResult both = run(model(), plan, cluster_for(plan));
  plan.messages.scatter_messages = false;
  EXPECT_EQ(both.step_time, run(model(), plan, cluster_for(plan)).step_time);
}

// An embedding table that the head shares: on a loop it is on two ranks, which sum its gradient
// (each sends the whole in an all-reduce of two); on a V one rank has both ends.
TEST(LowerSchedulesTest, ATiedTableIsCopiedOnlyToAnotherRank) {
  ModelSpec tied = model();
  tied.embedding.tied = true;
  const std::pair<ScheduleName, std::int64_t> cases[] = {{ScheduleName::kInterleaved, 2},
                                                         {ScheduleName::kVHalf, 0}};
  for (const auto& [schedule, tables] : cases) {
    const ParallelPlan plan = plan_of(schedule);
    EXPECT_EQ(run(tied, plan, cluster_for(plan))
                  .bytes_by_axis[static_cast<std::size_t>(Axis::kData)]
                  .value(),
              tables * 1000 * 512 * 4);
  }
  const ParallelPlan plan = plan_of(ScheduleName::kDualPipe, 1, 2);
  run(tied, plan, cluster_for(plan));
}

// A fused op hides the collectives of its forward behind its backward's compute and the other way
// round; passes on their own can't.
TEST(LowerSchedulesTest, FusedOpsHideCommunication) {
  const auto exposed = [](ScheduleName schedule) {
    ParallelPlan plan = plan_of(schedule, 2);
    plan.batch.global_batch = 32;
    const SimulationResult result = run(model(), plan, cluster_for(plan, 200_GBps));
    return result.breakdown.exposed_communication[static_cast<std::size_t>(Axis::kTensor)];
  };
  EXPECT_LT(2 * exposed(ScheduleName::kDualPipe), exposed(ScheduleName::kChimera));
  EXPECT_LT(2 * exposed(ScheduleName::kDualPipeV), exposed(ScheduleName::kZeroBubbleVHand));
}

TEST(LowerSchedulesTest, TheOrderOfSimultaneousOpsChangesNothing) {
  for (const ScheduleName schedule :
       {ScheduleName::kInterleaved, ScheduleName::kZeroBubbleVHand, ScheduleName::kDualPipe}) {
    ParallelPlan plan = plan_of(schedule, 2, 2);
    plan.state.zero = 1;
    Cluster cluster = one_node(16, 50_GBps, 300ns);
    cluster.chip.communication.fixed = {.compute_share = 0.2, .memory_share = 0.1};
    const SimulationResult first = run(model(), plan, cluster, {.steps = 2});
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
      const SimulationResult again =
          run(model(), plan, cluster, {.steps = 2, .shuffle_seed = seed});
      EXPECT_EQ(again.step_time, first.step_time) << name_of(schedule);
      EXPECT_EQ(again.breakdowns, first.breakdowns) << name_of(schedule);
    }
  }
}

// The norm of all gradients delays the optimizer of every rank until the last one has its own. With
// post-validation the next step begins as if there were no norm, except for the kernel that sums
// up.
TEST(LowerSchedulesTest, PostValidationKeepsTheBubbleBetweenStepsClosed) {
  const auto step = [](bool clip, bool post) {
    ParallelPlan plan = plan_of(ScheduleName::kZeroBubbleH2);
    plan.update.clip_gradients = clip;
    plan.update.post_validation = post;
    return run(model(), plan, cluster_for(plan), {.steps = 3});
  };
  const SimulationResult without = step(false, false);
  const SimulationResult before = step(true, false);
  const SimulationResult after = step(true, true);
  EXPECT_GT(before.breakdown.bubble, without.breakdown.bubble);
  EXPECT_LT(after.breakdown.bubble, before.breakdown.bubble);
  EXPECT_LT(after.step_time, before.step_time);
  EXPECT_GT(after.step_time, without.step_time);
}

// Returns the first compute op of a step with this text in its name.
const TimelineOp& first_op(const OpGraph& graph, const Timeline& timeline, const std::string& name,
                           std::uint32_t step, std::optional<std::int32_t> microbatch = {}) {
  const Program& program = graph.programs[graph.ranks[timeline.rank.index()].program.index()];
  return *std::ranges::find_if(timeline.ops, [&](const TimelineOp& op) {
    const OpLabel& label = program.labels[op.op];
    return op.step == step && program.ops[op.op].kind == OpKind::kCompute &&
           label.microbatch == microbatch &&
           graph.names[label.name].find(name) != std::string::npos;
  });
}

// Rank r goes ahead with 2 (P - 1 - r) forwards of the next step, before the last rank has summed
// up its gradients, and no further.
TEST(LowerSchedulesTest, PostValidationLetsNoForwardPastTheNorm) {
  for (const ScheduleName schedule :
       {ScheduleName::kZeroBubbleH2, ScheduleName::kZeroBubbleVHand, ScheduleName::kDualPipe}) {
    ParallelPlan plan = plan_of(schedule);
    plan.update.clip_gradients = true;
    plan.update.post_validation = true;
    // The last rank is late with its last micro-batches. The others have long begun the next step.
    Cluster cluster = cluster_for(plan);
    OpGraph graph = lower(model(), plan, cluster.places, cluster.chip, {});
    const Program& last = graph.programs.back();
    for (std::uint32_t op = 0; op < last.ops.size(); ++op) {
      if (last.ops[op].kind != OpKind::kCompute || last.labels[op].microbatch) continue;
      if (graph.names[last.labels[op].name] != "gradient norm") continue;
      ComputeWork slow = graph.compute_works[last.ops[op].work];
      slow.kernels[0].read = Bytes(100'000 * slow.kernels[0].read.value());
      graph.programs.back().ops[op].work = static_cast<std::uint32_t>(graph.compute_works.size());
      graph.compute_works.push_back(slow);
    }
    SimulationOptions options{.steps = 2};
    for (std::uint32_t rank = 0; rank < kStages; ++rank) options.recorded_ranks.emplace_back(rank);
    const SimulationResult result = simulate(graph, cluster, options);
    const Time known = first_op(graph, result.timelines[kStages - 1], "gradient norm", 0).ended;
    const PipelineSchedule schedule_of_plan = schedule_of(plan, {});
    const std::vector<PipelineOp>& order = schedule_of_plan.ranks[0];
    std::int32_t ahead = 0;
    while (ahead < 2 * (kStages - 1) && order[static_cast<std::size_t>(ahead) + 1] ==
                                            PipelineOp{PipelineOpKind::kForward, ahead + 1, 0}) {
      ++ahead;
    }
    EXPECT_GT(ahead, 1) << name_of(schedule);
    for (std::int32_t microbatch = 0; microbatch <= ahead; ++microbatch) {
      const Time start = first_op(graph, result.timelines[0], "forward", 1, microbatch).started;
      EXPECT_EQ(start < known, microbatch < ahead) << name_of(schedule) << " " << microbatch;
    }
  }
}

// Several chunks of the optimal schedule lie as a V, within the memory of 1F1B.
TEST(LowerSchedulesTest, TheOptimalScheduleTakesChunks) {
  const auto small = [](ScheduleName schedule) {
    ParallelPlan plan = plan_of(schedule);
    plan.mesh.pp = 2;
    plan.batch.global_batch = 4;
    return plan;
  };
  ParallelPlan plan = small(ScheduleName::kOneForwardOneBackward);
  plan.pipeline.optimal_schedule = true;
  plan.pipeline.chunks = 2;
  const Cluster cluster = cluster_for(plan);
  EXPECT_TRUE(check_schedule(plan).empty());
  EXPECT_EQ(placement_of(plan.pipeline), Placement::kV);
  const PipelineCosts costs = pipeline_times(model(), plan, cluster);
  const PipelineSchedule order = schedule_of(plan, costs);
  const PipelineReplay replayed = replay(order, costs);
  EXPECT_LE(std::ranges::max(replayed.peak_in_flight), 2 * 2);
  const ParallelPlan zbv = small(ScheduleName::kZeroBubbleVAuto);
  EXPECT_LE(replayed.span_bubble, replay(schedule_of(zbv, costs), costs).span_bubble);
  const SimulationResult result =
      simulate(lower(model(), plan, cluster.places, cluster.chip, costs), cluster, {.steps = 2});
  EXPECT_GT(result.step_time, Duration(0));
}

TEST(LowerSchedulesTest, TheOptimalScheduleIsNoWorseThanZeroBubble) {
  const auto step = [](bool optimal) {
    ParallelPlan plan = plan_of(ScheduleName::kZeroBubbleAuto1P);
    plan.pipeline.optimal_schedule = optimal;
    plan.pipeline.memory_limit = kStages;
    const Cluster cluster = cluster_for(plan);
    EXPECT_TRUE(check_schedule(plan).empty());
    const PipelineCosts costs = pipeline_times(model(), plan, cluster);
    const PipelineSchedule order = schedule_of(plan, costs);
    return replay(order, costs).span_bubble;
  };
  EXPECT_LE(step(true), step(false));
}

TEST(LowerSchedulesTest, ALayoutCountsEveryChunk) {
  ParallelPlan plan = plan_of(ScheduleName::kInterleaved);
  plan.pipeline.layout = {0, 1, 1, 1, 2, 1, 1, 1};
  const OpGraph graph = lower(model(), plan, cluster_for(plan).places, ideal_chip(), {});
  // Rank 0 has stages 0 and 4, which begins behind three blocks.
  std::vector<std::int32_t> of_first;
  for (const OpLabel& label : graph.programs[0].labels)
    of_first.push_back(label.layer.value_or(-1));
  std::ranges::sort(of_first);
  of_first.erase(std::unique(of_first.begin(), of_first.end()), of_first.end());
  EXPECT_EQ(of_first, (std::vector<std::int32_t>{-1, 3, 4}));
  run(model(), plan, cluster_for(plan));
}

TEST(LowerSchedulesTest, AScheduleOfOnesOwnRuns) {
  ParallelPlan plan = plan_of(ScheduleName::kOneForwardOneBackward);
  plan.mesh.pp = 2;
  plan.batch.global_batch = 2;
  plan.pipeline.own_schedule = parse_schedule(
      "placement: v\n"
      "F0.0 F1.0 F0.1 BW0.1 BW0.0 F1.1 BW1.1 BW1.0\n"
      "F0.0 F0.1 BW0.1 F1.0 F1.1 BW0.0 BW1.1 BW1.0\n");
  const SimulationResult result = run(model(), plan, one_node(2, 100_GBps));
  EXPECT_EQ(result.bytes_by_axis[static_cast<std::size_t>(Axis::kPipeline)].value(),
            2 * 2 * 2 * 256 * 512 * 2);
}

TEST(LowerSchedulesTest, AScheduleOfOnesOwnThatFusesPassesCantGatherLayers) {
  ParallelPlan plan = plan_of(ScheduleName::kOneForwardOneBackward);
  plan.mesh.pp = 1;
  plan.mesh.dp = 2;
  plan.state.zero = 3;
  plan.batch.global_batch = 4;
  plan.pipeline.own_schedule = parse_schedule("F0.0 FB1.0/0.0 BW1.0\n");
  std::string text;
  for (const Problem& problem : check_schedule(plan)) text += problem.field + ' ' + problem.message;
  EXPECT_NE(text.find("zero is 3 (FSDP) with fused forwards and backwards"), text.npos) << text;
  plan.state.zero = 2;
  EXPECT_EQ(check_schedule(plan), std::vector<Problem>{});
}

TEST(LowerSchedulesTest, RulesAreSaidInTheWordsOfThePlan) {
  const auto problems_of = [](ScheduleName schedule, std::int64_t pp, std::int64_t microbatches) {
    ParallelPlan plan = plan_of(schedule);
    plan.mesh.pp = pp;
    plan.batch.global_batch = microbatches;
    std::string text;
    for (const Problem& problem : check_schedule(plan)) {
      text += problem.field + ": " + problem.message + "\n";
    }
    return text;
  };
  EXPECT_EQ(
      problems_of(ScheduleName::kDualPipe, 3, 7),
      "pp: must be even for dualpipe (two directions), is 3; nearest legal: 2 and 4\n"
      "global_batch: makes 7 micro-batches (global_batch / (dp x microbatch)), which must be "
      "even (both directions together) and at least 2 x stages = 6 for dualpipe, is 7; nearest "
      "legal: 6 and 8\n");
  EXPECT_EQ(problems_of(ScheduleName::kZeroBubbleH1, 4, 7),
            "global_batch: makes 7 micro-batches (global_batch / (dp x microbatch)), which must be "
            "at least 2 x stages = 8 for zb_h1, is 7; nearest legal: 8\n");
  EXPECT_EQ(problems_of(ScheduleName::kZeroBubbleH1, 4, 8), "");
}

}  // namespace
}  // namespace stepsim
