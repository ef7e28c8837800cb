// Every kind of model through lowering and simulation. simulate() itself compares the bytes sent
// with planned_bytes(), checks that memory is freed, and that every breakdown adds up.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/lowering/stages/shared_weights.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"
#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

using namespace literals;

ModelSpec with_latent_attention() {
  ModelSpec model = named("latent attention");
  model.attention.kv_heads = 8;
  model.attention.head_dim = 48;
  model.latent = {.q_rank = 96, .kv_rank = 64, .nope_dim = 32, .rope_dim = 16, .v_dim = 24};
  return model;
}

ModelSpec with_experts() {
  ModelSpec model = named("experts");
  model.experts = {.routed = 8,
                   .per_token = 2,
                   .intermediate = 256,
                   .shared_intermediate = 256,
                   .first_dense = 1};
  return model;
}

ModelSpec with_prediction() {
  ModelSpec model = with_latent_attention();
  model.name = "multi-token prediction";
  model.prediction.modules = 2;
  return model;
}

std::vector<ModelSpec> dense_kinds() {
  std::vector<ModelSpec> models = {with_latent_attention(), with_prediction()};
  models.push_back(named("windows"));
  models.back().attention.window = 64;
  models.back().mixer_pattern = "LLG";
  models.push_back(named("parallel branches, one key-value head"));
  models.back().parallel_branches = true;
  models.back().attention.kv_heads = 1;
  models.push_back(with_latent_attention());
  models.back().name = "parallel branches, queries that are not narrowed";
  models.back().parallel_branches = true;
  models.back().latent.q_rank = 0;
  models.push_back(named("post-norms, tied"));
  models.back().norms.post = models.back().attention.qk_norm = models.back().embedding.tied = true;
  models.push_back(named("encoder with dropout"));
  models.back().attention.causal = models.back().mlp.gated = false;
  models.back().dropout = models.back().norms.embedding = true;
  models.back().embedding.learned_positions = 256;
  models.back().norms.kind = NormKind::kLayer;
  return models;
}

std::vector<ModelSpec> attention_kinds() {
  std::vector<ModelSpec> models;
  models.push_back(named("norms behind the branches, over all heads"));
  models.back().norms.pre = false;
  models.back().norms.post = models.back().attention.qk_norm_whole = true;
  models.push_back(named("queries out of a narrow vector"));
  models.back().attention.query_rank = 64;
  models.push_back(named("a norm for each parallel branch"));
  models.back().parallel_branches = models.back().norms.parallel = true;
  models.push_back(named("a gate for each value"));
  models.back().attention.gate = AttentionGate::kValue;
  models.push_back(named("a gate for each head, narrow values"));
  models.back().attention.gate = AttentionGate::kHead;
  models.back().attention.value_dim = 32;
  models.push_back(named("chunks of 64 tokens, shared keys"));
  models.back().attention.window = 64;
  models.back().attention.window_kind = WindowKind::kChunked;
  models.back().mixer_pattern = "LlGg";
  models.push_back(named("local layers of another size"));
  models.back().attention.window = 64;
  models.back().mixer_pattern = "LG";
  models.back().local = {.heads = 16, .kv_heads = 2, .head_dim = 32, .value_dim = 16};
  models.back().attention.values_are_keys = true;
  models.push_back(named("layers of two widths"));
  models.back().mlp.widths = {models.back().mlp.width, models.back().mlp.width / 2};
  models.push_back(named("vectors of each layer, shared keys"));
  models.back().embedding.of_layers = 16;
  models.back().mixer_pattern = "GGgg";
  models.push_back(named("compressed keys, streams, a prediction of another kind"));
  models.back().attention.kv_heads = 1;
  models.back().attention.window = 32;
  models.back().attention.query_rank = 64;
  models.back().mixer_pattern = "LCHC";
  models.back().indexer = {.heads = 4, .head_dim = 32, .top_k = 16};
  models.back().compressed = {
      .ratio = 4, .heavy_ratio = 16, .rope_dim = 16, .output_groups = 8, .output_rank = 32};
  models.back().hyper = {.streams = 4, .sinkhorn_iterations = 20};
  models.back().prediction = {.modules = 1, .block = "LD"};
  models.push_back(named("an encoder with windows"));
  models.back().attention.causal = false;
  models.back().attention.window = 32;
  models.back().mixer_pattern = "LLG";
  return models;
}

StateSpec state_of(StateKind kind) {
  StateSpec state{.kind = kind, .heads = 8, .groups = 8, .key_dim = 32, .value_dim = 64};
  state.convolution = kind == StateKind::kLightning ? 0 : 4;
  if (kind == StateKind::kMamba2) state.groups = 1;
  if (kind == StateKind::kGatedDelta) state.groups = 4;
  if (kind == StateKind::kKimiDelta) state.rank = 32;
  if (kind == StateKind::kMamba) {
    state = {.kind = kind, .heads = 256, .groups = 1, .key_dim = 16, .value_dim = 1};
    state.convolution = 4;
    state.rank = 24;
  }
  if (kind == StateKind::kShort) {
    state = {.kind = kind, .heads = 256, .groups = 1, .key_dim = 1, .value_dim = 1};
    state.convolution = 3;
  }
  return state;
}

constexpr StateKind kStates[] = {StateKind::kMamba2,    StateKind::kGatedDelta,
                                 StateKind::kKimiDelta, StateKind::kLightning,
                                 StateKind::kMamba,     StateKind::kShort};

std::vector<ModelSpec> state_kinds() {
  std::vector<ModelSpec> models;
  for (const StateKind kind : kStates) {
    models.push_back(named("states and attention"));
    models.back().name += ": " + std::string(name_of(kind));
    models.back().mixer_pattern = "SSG";
    models.back().state = state_of(kind);
  }
  models.push_back(named("states beside attention"));
  models.back().mixer_pattern = "B";
  models.back().state = state_of(StateKind::kMamba2);
  models.push_back(named("a branch a layer"));
  models.back().mixer_pattern = "S-G-";
  models.back().mlp_pattern = "-D-D";
  models.back().state = state_of(StateKind::kMamba2);
  models.push_back(named("states alone"));
  models.back().mixer_pattern = "S";
  models.back().mlp_pattern = "-";
  models.back().attention.heads = models.back().attention.kv_heads =
      models.back().attention.head_dim = 0;
  models.back().mlp.width = 0;
  models.back().state = state_of(StateKind::kMamba2);
  models.back().prediction.modules = 1;
  return models;
}

std::vector<ModelSpec> sparse_kinds() {
  std::vector<ModelSpec> models = {with_latent_attention()};
  models.back().name = "sparse attention over latent vectors";
  models.back().mixer_pattern = "GIi";
  models.back().indexer = {.heads = 4, .head_dim = 32, .top_k = 64};
  models.push_back(named("sparse attention, grouped queries"));
  models.back().mixer_pattern = "I";
  models.back().indexer = {.heads = 4, .head_dim = 32, .top_k = 64};
  models.push_back(with_latent_attention());
  models.back().name = "a gate on latent attention";
  models.back().attention.gate = AttentionGate::kValue;
  return models;
}

std::vector<ModelSpec> encoder_decoders() {
  std::vector<ModelSpec> models = {named("an encoder and a decoder")};
  models.back().mixer_pattern =
      std::string(static_cast<std::size_t>(models.back().layers) / 2, 'N');
  models.back().mixer_pattern += std::string(
      static_cast<std::size_t>(models.back().layers) - models.back().mixer_pattern.size(), 'X');
  models.push_back(named("norms behind, a projection in the head"));
  models.back().norms.pre = models.back().attention.causal = false;
  models.back().norms.post = models.back().head_projection = true;
  return models;
}

std::vector<ModelSpec> all_kinds() {
  std::vector<ModelSpec> models = dense_kinds();
  for (const auto& more : {attention_kinds(), state_kinds(), sparse_kinds(), encoder_decoders()}) {
    models.insert(models.end(), more.begin(), more.end());
  }
  return models;
}

SimulationResult run(const ModelSpec& model, std::int64_t tp, std::int64_t dp, std::int64_t pp,
                     bool sequence_parallel, Recompute recompute) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.mesh.dp = dp;
  plan.mesh.pp = pp;
  plan.state.zero = dp > 1 ? 1 : 0;
  plan.batch.global_batch = dp * 4;
  plan.batch.sequence = 256;
  plan.tensor.sequence_parallel = sequence_parallel;
  plan.recomputing.kind = recompute;
  const Cluster cluster = one_node(static_cast<int>(tp * dp * pp), 100_GBps);
  EXPECT_EQ(check(plan, model, cluster.places), std::vector<Problem>{}) << model.name;
  return simulate(lower(model, plan, cluster.places, cluster.chip, {}), cluster, {});
}

TEST(ModelKindsTest, EveryDenseKindRunsUnderEveryPlan) {
  for (const ModelSpec& model : all_kinds()) {
    for (const bool sequence_parallel : {false, true}) {
      for (const Recompute recompute : {Recompute::kNone, Recompute::kFull, Recompute::kMatmuls,
                                        Recompute::kAlternate, Recompute::kAlternateMatmuls}) {
        SCOPED_TRACE(model.name);
        const SimulationResult result = run(model, 2, 2, 2, sequence_parallel, recompute);
        EXPECT_GT(result.step_time, Duration(0));
      }
    }
  }
}

// Every run compares the bytes sent with planned_bytes() and checks that memory is freed.
TEST(ModelKindsTest, AVisionPartRunsOnTheFirstStage) {
  ModelSpec model = named("pictures");
  model.vision = {.layers = 3,
                  .hidden = 128,
                  .heads = 4,
                  .intermediate = 256,
                  .patch = 16,
                  .frames = 2,
                  .merge = 2,
                  .positions = 64};
  const Cluster cluster = one_node(8, 100_GBps);
  for (const int zero : {0, 1, 3}) {
    Duration before;
    for (const VisionTraining trained :
         {VisionTraining::kNone, VisionTraining::kProjector, VisionTraining::kAll}) {
      if (zero == 3 && trained != VisionTraining::kAll) continue;
      ParallelPlan plan;
      plan.mesh.tp = plan.mesh.pp = zero == 3 ? 1 : 2;
      plan.mesh.dp = zero == 3 ? 8 : 2;
      plan.state.zero = zero;
      plan.batch.global_batch = 8;
      plan.batch.sequence = 256;
      plan.batch.vision_tokens = 128;
      plan.batch.picture_tokens = 64;
      plan.training.vision = trained;
      ASSERT_EQ(check(plan, model, cluster.places), std::vector<Problem>{});
      const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
      const SimulationResult result = simulate(graph, cluster, {});
      EXPECT_GT(result.step_time, before) << "a backward more";
      before = result.step_time;
    }
  }
}

// Layers "SZSZSZ": the first two layers Z own a block each, the third reads the first block again.
ModelSpec with_shared_blocks() {
  ModelSpec model = named("a shared block before a state");
  model.layers = 6;
  model.mixer_pattern = "SZ";
  model.mlp_pattern = "-";
  model.state = state_of(StateKind::kMamba2);
  model.shared = {.blocks = 2, .adapter_rank = 16};
  return model;
}

// Weights of an earlier layer are gathered and reduced for each layer, but held, reduced and
// updated once.
TEST(ModelKindsTest, SharedWeightsRunOnOneStage) {
  const ModelSpec model = with_shared_blocks();
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull, Recompute::kMatmuls}) {
    for (const bool sequence_parallel : {false, true}) {
      EXPECT_GT(run(model, 2, 2, 1, sequence_parallel, recompute).step_time, Duration(0));
    }
    ParallelPlan sharded;
    sharded.mesh.dp = 4;
    sharded.state.zero = 3;
    sharded.batch.global_batch = 8;
    sharded.batch.sequence = 256;
    sharded.recomputing.kind = recompute;
    const Cluster cluster = one_node(4, 100_GBps);
    const OpGraph graph = lower(model, sharded, cluster.places, cluster.chip, {});
    EXPECT_GT(simulate(graph, cluster, {}).step_time, Duration(0));
    ParallelPlan divided = sharded;
    divided.mesh.dp = 1;
    divided.state.zero = 0;
    divided.mesh.cp = 4;
    divided.tensor.cp_mode = ContextMode::kAllGather;
    const OpGraph rings = lower(model, divided, cluster.places, cluster.chip, {});
    EXPECT_GT(simulate(rings, cluster, {}).step_time, Duration(0));
  }
}

TEST(ModelKindsTest, SharedWeightsAreHeldByEachStageThatReadsThem) {
  ModelSpec model = with_shared_blocks();
  ParallelPlan plan;
  plan.mesh.pp = 3;
  plan.batch.sequence = 256;
  std::vector<SharedWeights> shared = shared_weights(model, plan);
  ASSERT_EQ(shared.size(), 1U);  // the second block is read by the second stage only
  EXPECT_EQ(shared[0].holders, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(shared[0].owner, 0);
  const ModelLayers layers = build_layers(model, shard_of(plan, {}));
  const std::int64_t own = layers.block(1).parameters() - layers.block(5).parameters();
  EXPECT_GT(own, 0);
  EXPECT_EQ(parameters_of(shared[0], model, layers), own);
  model.embedding.tied = true;
  shared = shared_weights(model, plan);
  ASSERT_EQ(shared.size(), 2U);
  EXPECT_EQ(shared[0].name, "tied embedding");
  plan.mesh.pp = 1;
  EXPECT_TRUE(shared_weights(model, plan).empty());
  model.layers = 12;
  plan.mesh.pp = 2;
  plan.pipeline.schedule = ScheduleName::kDualPipe;
  const std::vector<Problem> refused = check(plan, model, one_node(2, 100_GBps).places);
  EXPECT_EQ(std::ranges::count(refused, "schedule", &Problem::field), 1);
}

// Every run compares the bytes sent with planned_bytes() and checks that memory is freed.
TEST(ModelKindsTest, SharedWeightsRunOverStages) {
  ModelSpec model = with_shared_blocks();
  model.layers = 12;
  const Cluster cluster = one_node(8, 100_GBps);
  int runs = 0;
  for (const bool tied : {false, true}) {
    for (const ScheduleName schedule :
         {ScheduleName::kOneForwardOneBackward, ScheduleName::kInterleaved,
          ScheduleName::kZeroBubbleVAuto, ScheduleName::kZeroBubbleH1}) {
      for (const int zero : {0, 1, 2, 3}) {
        for (const bool tensor : {false, true}) {
          if (zero == 3 && tensor) continue;
          ParallelPlan plan;
          plan.mesh.pp = 2;
          plan.mesh.tp = tensor ? 2 : 1;
          plan.mesh.dp = tensor ? 2 : 4;
          plan.tensor.sequence_parallel = tensor;
          plan.batch.sequence = 256;
          plan.batch.global_batch = 16;
          plan.state.zero = zero;
          plan.pipeline.schedule = schedule;
          if (schedule == ScheduleName::kInterleaved) plan.pipeline.chunks = 3;
          model.embedding.tied = tied;
          const std::vector<Problem> problems = check(plan, model, cluster.places);
          if (!problems.empty()) continue;
          SCOPED_TRACE(std::to_string(zero));
          const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
          EXPECT_GT(simulate(graph, cluster, {}).step_time, Duration(0));
          ++runs;
        }
      }
    }
  }
  EXPECT_GE(runs, 24);
}

// Keys that later layers read, and an encoder's result, go over the boundaries of stages beside the
// stream: planned_bytes() is checked in every run. They stay under full recompute.
TEST(ModelKindsTest, WhatLaterLayersReadIsHandedOn) {
  ParallelPlan plan;
  plan.batch.sequence = 256;
  const auto message = [&plan](const ModelSpec& model, std::int64_t layer) {
    return message_size(model, plan, build_layers(model, shard_of(plan, {})), layer);
  };
  ModelSpec model = named("keys");
  model.layers = 4;
  model.mixer_pattern = "GgGg";
  const Bytes stream(2 * 256 * model.hidden);
  const Bytes keys(2 * 256 * model.attention.kv_heads * 2 * model.attention.head_dim);
  EXPECT_EQ(message(model, 1), stream + keys);
  EXPECT_EQ(message(model, 2), stream);
  EXPECT_EQ(message(model, 3), stream + keys);
  model.mixer_pattern = "NNXX";
  EXPECT_EQ(message(model, 1), stream);
  EXPECT_EQ(message(model, 2), stream) << "the encoder's result itself";
  EXPECT_EQ(message(model, 3), 2 * stream);
  model.mixer_pattern = "G";
  model.embedding.of_layers = 8;
  EXPECT_EQ(message(model, 3), stream + Bytes(2 * 256 * 8)) << "the last layer's vector";

  const auto kept = [&plan](const ModelSpec& shape) {
    ParallelPlan full = plan;
    full.recomputing.kind = Recompute::kFull;
    Bytes sum;
    for (const LayerStep& step :
         lower_model(shape, full, {}, {}).blocks.front().in(BlockRecompute::kAlone).forward) {
      sum += step.kept;
    }
    return sum;
  };
  model.embedding.of_layers = 0;
  EXPECT_EQ(kept(model), stream);
  model.mixer_pattern = "Gg";
  EXPECT_EQ(kept(model), stream + keys);
  model.mixer_pattern = "NNNX";
  EXPECT_EQ(kept(model), stream);
  model.mixer_pattern = "NX";
  EXPECT_EQ(kept(model), 2 * stream) << "the encoder's result is kept once";
}

// Returns how many ops of a program wait for each op of the stream of this name.
std::vector<int> waiting_for(const Program& program, const std::string& name) {
  std::vector<int> counts;
  for (std::uint32_t s = 0; s < program.streams.size(); ++s) {
    if (program.streams[s].name != name) continue;
    counts.resize(program.streams[s].ops);
    for (const Dependency& dependency : program.dependencies) {
      if (dependency.stream == StreamId(s)) ++counts[dependency.position];
    }
  }
  return counts;
}

TEST(ModelKindsTest, EachInputThatIsGatheredAgainHasItsOwnReader) {
  std::vector<ModelSpec> models = dense_kinds();
  models.push_back(with_latent_attention());
  models.back().name = "parallel branches, two gathers in a row";
  models.back().parallel_branches = true;
  ParallelPlan plan;
  plan.mesh.tp = 2;
  plan.batch.global_batch = 2;
  plan.batch.sequence = 256;
  const Cluster cluster = one_node(2, 100_GBps);
  for (const ModelSpec& model : models) {
    const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
    for (const Program& program : graph.programs) {
      const std::vector<int> readers = waiting_for(program, "tp regather");
      EXPECT_FALSE(readers.empty()) << model.name;
      EXPECT_EQ(readers, std::vector<int>(readers.size(), 1)) << model.name;
    }
  }
}

double model_matmul_flops(const ModelSpec& model, std::int64_t sequences) {
  return model_flops(model, sequences, 256, AttentionFlops::kCausal);
}

// The FLOPs that run are those that the model needs, the attention's recomputed scores (0.5 of 3
// forward passes of it), and elementwise work, which is small.
TEST(ModelKindsTest, WhatRunsIsWhatTheModelNeeds) {
  std::vector<ModelSpec> models = dense_kinds();
  models.push_back(with_experts());
  for (const ModelSpec& model : models) {
    const SimulationResult result = run(model, 1, 2, 2, true, Recompute::kNone);
    const double needed = model_matmul_flops(model, 8);
    EXPECT_GT(result.flops.value(), needed) << model.name;
    EXPECT_LT(result.flops.value(), 1.1 * needed) << model.name;
  }
}

// The table and the unembedding are gathered for each layer that reads them: planned_bytes() is
// checked in every run.
// Bytes that cross between context ranks are checked in every run.
TEST(ModelKindsTest, EveryKindRunsWithDividedSequences) {
  for (const ModelSpec& model : all_kinds()) {
    for (const ContextMode mode : {ContextMode::kAllGather, ContextMode::kRing,
                                   ContextMode::kZigzagRing, ContextMode::kUlysses}) {
      for (const Recompute recompute : {Recompute::kNone, Recompute::kFull, Recompute::kMatmuls}) {
        SCOPED_TRACE(model.name + ", " + std::string(name_of(mode)));
        ParallelPlan plan;
        plan.mesh.cp = 2;
        plan.mesh.tp = 2;
        plan.tensor.cp_mode = mode;
        plan.batch.global_batch = 2;
        plan.batch.sequence = 256;
        plan.recomputing.kind = recompute;
        const Cluster cluster = one_node(4, 100_GBps);
        const bool is_ring = mode == ContextMode::kRing || mode == ContextMode::kZigzagRing;
        const bool refused = (model.indexer.heads > 0 && is_ring) ||
                             model.mixer_pattern.find('X') != std::string::npos;
        EXPECT_EQ(!check(plan, model, cluster.places).empty(), refused);
        if (refused) continue;
        const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
        EXPECT_GT(simulate(graph, cluster, {}).step_time, Duration(0));
      }
    }
  }
}

double attention_flops(const std::vector<LayerStep>& steps) {
  double sum = 0;
  for (const LayerStep& step : steps) {
    for (const Kernel& kernel : step.kernels) {
      if (kernel.kind == KernelKind::kAttentionForward) sum += kernel.flops.value();
    }
  }
  return sum;
}

// The ranks of a ring score all pairs of chunks and of two-sided windows between them.
TEST(ModelKindsTest, RingsScoreEveryPair) {
  for (const ModelSpec& model : attention_kinds()) {
    if (model.attention.window == 0 || model.compressed.output_groups > 0) continue;
    const auto flops = [&](std::int64_t cp) {
      ParallelPlan plan;
      plan.mesh.cp = cp;
      plan.tensor.cp_mode = ContextMode::kRing;
      plan.batch.sequence = 256;
      double sum = 0;
      for (std::int64_t rank = 0; rank < cp; ++rank) {
        for (const LoweredBlock& block :
             lower_model(model, plan, {.context_rank = rank}, {}).blocks) {
          sum += attention_flops(block.in(BlockRecompute::kNone).forward);
        }
      }
      return sum;
    };
    EXPECT_NEAR(flops(4), flops(1), 1e-9 * flops(1)) << model.name;
  }
}

TEST(ModelKindsTest, PredictionRunsFullySharded) {
  for (const bool tied : {false, true}) {
    for (const std::int64_t pp : {1, 2}) {
      ModelSpec model = with_prediction();
      model.embedding.tied = tied;
      ParallelPlan plan;
      plan.mesh.dp = 4;
      plan.mesh.pp = pp;
      plan.state.zero = 3;
      plan.batch.global_batch = 16;
      plan.batch.sequence = 256;
      const Cluster cluster = one_node(static_cast<int>(4 * pp), 100_GBps);
      EXPECT_EQ(check(plan, model, cluster.places), std::vector<Problem>{});
      const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
      EXPECT_GT(simulate(graph, cluster, {.steps = 2}).step_time, Duration(0));
      // Each of the two modules' entries and losses gathers its own table.
      const auto gathered = static_cast<std::size_t>(MemoryCategory::kGatheredParameters);
      plan.state.shard = 2;
      plan.state.reshard_after_forward = false;
      const SimulationResult hybrid =
          simulate(lower(model, plan, cluster.places, cluster.chip, {}), cluster, {.steps = 2});
      EXPECT_GT(hybrid.memory_peaks[0].by_category[gathered], Bytes(0));
    }
  }
}

TEST(ModelKindsTest, ExpertsRunWithDataAndPipelineParallelism) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    EXPECT_GT(run(with_experts(), 1, 2, 2, true, recompute).step_time, Duration(0));
  }
}

// A module of multi-token prediction reads the embedding's table: with a pipeline the last stage
// holds a copy and the two gradients are summed, as with tied embeddings.
TEST(ModelKindsTest, PredictionCopiesTheTableToTheLastStage) {
  ModelSpec model = with_prediction();
  const auto held = [&](std::int64_t pp) {
    const SimulationResult result = run(model, 1, 1, pp, true, Recompute::kNone);
    Bytes sum;
    for (const auto& peak : result.memory_peaks) {
      sum += peak.by_category[static_cast<std::size_t>(MemoryCategory::kParameters)];
    }
    return sum;
  };
  const std::int64_t all = parameter_count(model) + prediction_parameter_count(model);
  EXPECT_EQ(held(1), Bytes(2 * all));
  EXPECT_EQ(held(2), Bytes(2 * (all + 1000 * 512)));
}

}  // namespace
}  // namespace stepsim
