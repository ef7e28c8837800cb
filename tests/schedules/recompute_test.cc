// Recompute: what a block keeps, what comes back, and what runs and is sent again. simulate()
// itself compares the bytes sent with planned_bytes() and checks that memory is freed.

#include "schedules/lowering/recompute/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/lowering/steps/expert.h"
#include "schedules/plan/axis.h"
#include "sim/run/simulate.h"
#include "tests/support/layer_ops.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"
#include "workload/layers.h"

namespace stepsim {
namespace {

std::vector<OpRecompute> ops_again(const Layer& block, const ParallelPlan& plan) {
  return recomputed_ops(block, plan.recomputing, plan.mesh, plan.tensor.cp_mode);
}

using namespace literals;

constexpr auto kActivations = static_cast<std::size_t>(MemoryCategory::kActivations);

ModelSpec with_everything() {
  ModelSpec model = named("latent attention and shared experts");
  model.attention.kv_heads = 8;
  model.attention.head_dim = 48;
  model.latent = {.q_rank = 96, .kv_rank = 64, .nope_dim = 32, .rope_dim = 16, .v_dim = 24};
  model.experts = {.routed = 8,
                   .per_token = 2,
                   .intermediate = 256,
                   .shared_intermediate = 256,
                   .first_dense = 1};
  return model;
}

std::vector<ModelSpec> kinds() {
  std::vector<ModelSpec> models = {named("plain"), with_everything()};
  models.push_back(with_everything());
  models.back().name = "narrow keys, no shared experts, prediction";
  models.back().latent.q_rank = 0;
  models.back().experts.shared_intermediate = 0;
  models.back().prediction.modules = 1;
  models.push_back(named("shared gate"));
  models.back().experts = {.routed = 8,
                           .per_token = 2,
                           .intermediate = 256,
                           .shared_intermediate = 256,
                           .every = 2,
                           .shared_gate = true};
  models.push_back(named("parallel branches"));
  models.back().parallel_branches = true;
  models.push_back(named("post-norms, norms of q and k"));
  models.back().norms.post = models.back().attention.qk_norm = true;
  models.push_back(named("dropout"));
  models.back().dropout = true;
  models.back().mlp.gated = false;
  return models;
}

ParallelPlan plan_of(std::int64_t tp, std::int64_t dp, std::int64_t pp, int zero) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.mesh.dp = dp;
  plan.mesh.pp = pp;
  plan.state.zero = zero;
  plan.batch.global_batch = dp * 4;
  plan.batch.sequence = 256;
  return plan;
}

SimulationResult run(const ModelSpec& model, const ParallelPlan& plan) {
  const Cluster cluster = one_node(static_cast<int>(plan.mesh.ranks()), 100_GBps);
  EXPECT_EQ(check(plan, model, cluster.places), std::vector<Problem>{});
  return simulate(lower(model, plan, cluster.places, cluster.chip, {}), cluster, {});
}

Layer block_of(const ModelSpec& model, const ParallelPlan& plan) {
  return build_layers(model, {.sequences = plan.batch.microbatch_size,
                              .sequence_length = plan.batch.sequence,
                              .tensor = plan.mesh.tp,
                              .sequence_parallel = plan.divides_tokens(),
                              .context = plan.mesh.cp})
      .block(model.layers - 1);
}

// Returns a plan for every form of recompute that a model allows.
std::vector<ParallelPlan> ways(const ModelSpec& model, const ParallelPlan& base) {
  std::vector<ParallelPlan> plans;
  const auto add = [&](Recompute recompute, std::vector<RecomputeModule> modules,
                       std::vector<KeptResult> kept = {}) {
    ParallelPlan plan = base;
    plan.recomputing.kind = recompute;
    plan.recomputing.keep = std::move(kept);
    if (!modules.empty()) plan.recomputing.modules = std::move(modules);
    const Cluster cluster = one_node(static_cast<int>(plan.mesh.ranks()), 100_GBps);
    if (check(plan, model, cluster.places).empty()) plans.push_back(std::move(plan));
  };
  add(Recompute::kMatmuls, {});
  add(Recompute::kAlternate, {});
  add(Recompute::kAlternateMatmuls, {});
  add(Recompute::kFull, {});
  for (std::size_t i = 0; i < kKeptResults; ++i) {
    add(Recompute::kAllBut, {}, {static_cast<KeptResult>(i)});
  }
  add(Recompute::kAllBut, {}, {KeptResult::kQkv, KeptResult::kOut, KeptResult::kDown});
  std::vector<RecomputeModule> all;
  for (std::size_t i = 0; i < kRecomputeModules; ++i) {
    const auto module = static_cast<RecomputeModule>(i);
    add(Recompute::kSelective, {module});
    all.push_back(module);
    add(Recompute::kSelective, all);
  }
  using enum RecomputeModule;
  add(Recompute::kSelective, {kNorm, kActivation, kLatentUp});  // DeepSeek-V3
  EXPECT_GE(plans.size(), 6U);
  return plans;
}

TEST(RecomputeTest, EveryWayRunsForEveryModel) {
  for (const ModelSpec& model : kinds()) {
    SCOPED_TRACE(model.name);
    for (const bool sequence_parallel : {true, false}) {
      ParallelPlan base = plan_of(2, 2, 2, 1);
      if (!sequence_parallel && model.experts.routed > 0) continue;  // not allowed
      base.tensor.sequence_parallel = sequence_parallel;
      for (const ParallelPlan& plan : ways(model, base)) run(model, plan);
    }
    for (const bool fused : {true, false}) {
      ParallelPlan base = plan_of(1, 1, 1, 0);
      base.kernels.fused_attention = fused;
      for (const ParallelPlan& plan : ways(model, base)) run(model, plan);
    }
  }
}

TEST(RecomputeTest, EveryWayRunsWithEveryAxisAndSchedule) {
  for (const ModelSpec& model : kinds()) {
    SCOPED_TRACE(model.name);
    std::vector<ParallelPlan> bases;
    bases.push_back(plan_of(2, 4, 1, 3));
    for (std::size_t mode = 0; mode < kContextModes; ++mode) {
      bases.push_back(plan_of(2, 1, 1, 0));
      bases.back().mesh.cp = 2;
      bases.back().tensor.cp_mode = static_cast<ContextMode>(mode);
    }
    if (model.experts.routed > 0) {
      bases.push_back(plan_of(2, 2, 2, 1));
      bases.back().mesh.ep = 2;
      bases.back().mesh.etp = 2;
      bases.push_back(plan_of(1, 4, 1, 1));
      bases.back().mesh.ep = 2;
      bases.back().pieces.overlap_shared_experts = model.experts.shared_intermediate > 0;
    }
    for (const ScheduleName schedule : {ScheduleName::kZeroBubbleH1, ScheduleName::kDualPipeV}) {
      bases.push_back(plan_of(2, 1, 2, 0));
      bases.back().pipeline.schedule = schedule;
    }
    bases.push_back(plan_of(2, 1, 1, 0));
    bases.back().pieces.tensor_chunks = 2;
    for (const ParallelPlan& base : bases) {
      for (const ParallelPlan& plan : ways(model, base)) run(model, plan);
    }
  }
}

// The book's "big matmuls" (FORMULAS D13): the results of seven matmuls a layer, in bf16; that of
// the last one is the input of the next layer. D + 2 F a token of them are the MLP's.
TEST(RecomputeTest, MatmulsKeepsTheResultsOfMatmuls) {
  ParallelPlan plan = plan_of(1, 1, 1, 0);
  plan.recomputing.kind = Recompute::kMatmuls;
  const std::int64_t d = 512, f = 1024, kv = 256, tokens = 256;
  const Layer block = block_of(small_model(), plan);
  const std::vector<OpRecompute> ops = ops_again(block, plan);
  const std::int64_t mlp = 2 * tokens * (d + 2 * f);
  const std::int64_t attention = 2 * tokens * (d + 2 * kv + d);
  EXPECT_EQ(kept(ops).value(), mlp + attention);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool projects = block.ops[i].name.text().ends_with("projection");
    const bool is_read = block.ops[i].name != "mlp_residual";
    EXPECT_EQ(ops[i].again, !projects && is_read) << block.ops[i].name.text();
  }
}

// JAX's save_only_these_names: the names are kept, the rest runs again where somebody reads it.
// MaxText's save_qkv_proj keeps d + 2 kv columns beside the block's input, save_dot_except_mlp also
// those of the output projection. The down projection runs in neither: nothing reads its result.
TEST(RecomputeTest, AllButKeepsTheNamedResults) {
  ParallelPlan plan = plan_of(1, 1, 1, 0);
  plan.recomputing.kind = Recompute::kAllBut;
  const std::int64_t d = 512, kv = 256, tokens = 256;
  const Layer block = block_of(small_model(), plan);
  const auto again = [&](std::string_view name) {
    const auto op = std::ranges::find(block.ops, name, text_of_op);
    return ops_again(block, plan)[static_cast<std::size_t>(op - block.ops.begin())].again;
  };
  plan.recomputing.keep = {KeptResult::kQkv};
  EXPECT_EQ(kept(ops_again(block, plan)).value(), 2 * tokens * (d + d + 2 * kv));
  EXPECT_FALSE(again("qkv_projection"));
  EXPECT_TRUE(again("attention"));
  EXPECT_TRUE(again("out_projection"));
  EXPECT_TRUE(again("gate_up_projection"));
  EXPECT_FALSE(again("down_projection"));
  plan.recomputing.keep.push_back(KeptResult::kOut);
  EXPECT_EQ(kept(ops_again(block, plan)).value(), 2 * tokens * (d + d + 2 * kv + d));
  EXPECT_FALSE(again("out_projection"));
  // All five: norms, rotation and activations alone run again, and memory stays below `none`.
  const auto seconds = [&] { return to_seconds(run(small_model(), plan).step_time); };
  plan.recomputing.keep = {KeptResult::kQkv, KeptResult::kAttention, KeptResult::kOut,
                           KeptResult::kUp, KeptResult::kDown};
  EXPECT_FALSE(again("attention"));
  EXPECT_TRUE(again("mlp_activation"));
  const double most_kept = seconds();
  plan.recomputing.keep = {KeptResult::kDown};
  const double least_kept = seconds();
  plan.recomputing.kind = Recompute::kFull;
  plan.recomputing.keep = {};
  EXPECT_LT(most_kept, least_kept);
  EXPECT_LE(least_kept, seconds());
}

// torchtitan counts query, key, value, output, gate, up and down: the first, third, fifth and
// seventh result are kept, and attention's. Key, output and up projection run again.
TEST(RecomputeTest, AlternateKeepsEverySecondMatmul) {
  ParallelPlan plan = plan_of(1, 1, 1, 0);
  plan.recomputing.kind = Recompute::kAlternate;
  const std::int64_t d = 512, f = 1024, kv = 256, tokens = 256, heads = 8;
  const Layer block = block_of(small_model(), plan);
  const std::int64_t input = d, query = d, value = kv, attention = d, gate = f, down = d;
  EXPECT_EQ(kept(ops_again(block, plan)).value(),
            2 * tokens * (input + query + value + attention + gate + down) + 4 * tokens * heads);
  const SimulationResult alternate = run(small_model(), plan);
  plan.recomputing.kind = Recompute::kAlternateMatmuls;
  EXPECT_EQ(kept(ops_again(block, plan)).value(),
            2 * tokens * (input + query + value + gate + down));
  plan.recomputing.kind = Recompute::kMatmuls;
  const SimulationResult matmuls = run(small_model(), plan);
  double attention_flops = 0, other = 0;
  for (const LayerOp& op : block.ops) {
    for (const Kernel& kernel : op.forward) {
      if (op.name == "attention") attention_flops += kernel.flops.value();
    }
  }
  other = 2.0 * tokens * (d * kv + d * d + d * f);
  // Four layers and four micro-batches: three matmuls more, no attention.
  EXPECT_DOUBLE_EQ((alternate.flops - matmuls.flops).value(), 4 * 4 * (other - attention_flops));
}

// simulate() checks that all kept bytes are freed, also if a part of an op's kept bytes is dropped
// and another op adds as much, as v does behind a norm of q and k alone.
TEST(RecomputeTest, AlternateFreesWhatItKeeps) {
  for (const std::int64_t kv_heads : {1, 2, 4, 8}) {
    ModelSpec model = named("norms of q and k");
    model.attention.qk_norm = true;
    model.attention.kv_heads = kv_heads;
    for (const std::int64_t tp : {1, 2, 4}) {
      ParallelPlan plan = plan_of(tp, 1, 2, 0);
      plan.recomputing.kind = Recompute::kAlternate;
      run(model, plan);
      plan.pipeline.schedule = ScheduleName::kZeroBubbleH1;
      run(model, plan);
    }
    ParallelPlan plan = plan_of(1, 1, 1, 0);
    plan.recomputing.kind = Recompute::kAlternate;
    const Layer block = block_of(model, plan);
    const std::vector<OpRecompute> ops = ops_again(block, plan);
    const auto norm = std::ranges::find(block.ops, "qk_norm", text_of_op);
    const OpRecompute& of_norm = ops[static_cast<std::size_t>(norm - block.ops.begin())];
    const std::int64_t q = 2 * 256 * 512, k = 2 * 256 * 64 * kv_heads, v = k;
    EXPECT_EQ(of_norm.kept.value(), q + v) << "k is made again";
    EXPECT_EQ(of_norm.input_restored.value(), k);
  }
}

// If the shared experts run beside the dispatch, they come after it in the block but read the same
// input as before. Nothing else is kept or sent again.
TEST(RecomputeTest, SharedExpertsBesideTheDispatchKeepTheSame) {
  const auto expert = static_cast<std::size_t>(Axis::kExpert);
  for (const ModelSpec& model : kinds()) {
    if (model.experts.shared_intermediate == 0) continue;
    SCOPED_TRACE(model.name);
    ParallelPlan base = plan_of(1, 4, 1, 1);
    base.mesh.ep = 4;
    for (ParallelPlan plan : ways(model, base)) {
      // `alternate` counts matmuls in the order of the ops.
      const bool alternate = keeps_every_second_matmul(plan.recomputing.kind);
      const Layer block = block_of(model, plan);
      const Bytes kept_in_order = kept(ops_again(block, plan));
      const SimulationResult in_order = run(model, plan);
      plan.pieces.overlap_shared_experts = true;
      const SimulationResult beside = run(model, plan);
      const Layer moved = shared_experts_beside_dispatch(block);
      if (!alternate) {
        EXPECT_EQ(kept(ops_again(moved, plan)), kept_in_order);
        EXPECT_EQ(beside.flops, in_order.flops);
      }
      EXPECT_EQ(beside.bytes_by_axis[expert], in_order.bytes_by_axis[expert]);
    }
  }
}

// Every matmul with weights runs once forward and twice backward, however much is recomputed.
TEST(RecomputeTest, MatmulsRunsNoMatmulAgain) {
  ParallelPlan plan = plan_of(2, 1, 2, 0);
  const SimulationResult none = run(small_model(), plan);
  plan.recomputing.kind = Recompute::kMatmuls;
  const SimulationResult again = run(small_model(), plan);
  double expected = 0;
  const Layer block = block_of(small_model(), plan);
  const std::vector<OpRecompute> ops = ops_again(block, plan);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].again) continue;
    for (const Kernel& kernel : block.ops[i].forward) {
      EXPECT_NE(kernel.kind, KernelKind::kMatmul);
      expected += kernel.flops.value();
    }
  }
  EXPECT_DOUBLE_EQ((again.flops - none.flops).value(), 4 * 4 * 2 * expected);
  const auto tensor = static_cast<std::size_t>(Axis::kTensor);
  EXPECT_EQ(again.bytes_by_axis[tensor], none.bytes_by_axis[tensor]) << "sums are kept";
  // Stage 0 has 2 micro-batches of 2 blocks in flight, of which one block comes back.
  const Bytes ids(256 * 8);
  const Bytes least = 2 * (2 * kept(ops) + ids);
  EXPECT_GT(again.memory_peaks[0].by_category[kActivations], least);
  EXPECT_LE(again.memory_peaks[0].by_category[kActivations], least + block.saved());
  EXPECT_LT(again.memory_peaks[0].by_category[kActivations],
            none.memory_peaks[0].by_category[kActivations]);
}

// DeepSeek-V3 (arXiv 2412.19437, section 3.2.2): norms and up-projections are made again, and the
// activation's result; what stays are their inputs.
TEST(RecomputeTest, DeepSeekKeepsLatentVectorsInPlaceOfHeads) {
  ParallelPlan plan = plan_of(1, 1, 1, 0);
  plan.recomputing.kind = Recompute::kSelective;
  using enum RecomputeModule;
  plan.recomputing.modules = {kNorm, kActivation, kLatentUp};
  const ModelSpec model = with_everything();
  const Layer block = block_of(model, plan);
  const std::vector<OpRecompute> ops = ops_again(block, plan);
  const auto bytes_of = [&](std::string_view name) {
    const auto found = std::ranges::find(block.ops, name, text_of_op);
    return ops[static_cast<std::size_t>(found - block.ops.begin())].kept.value();
  };
  const std::int64_t tokens = 256;
  EXPECT_EQ(bytes_of("attention_norm"), 2 * tokens * 512) << "the block's input";
  EXPECT_EQ(bytes_of("latent_projection"), 0) << "read the norm";
  EXPECT_EQ(bytes_of("latent_norm"), 2 * tokens * (96 + 64)) << "latent vectors before the norm";
  EXPECT_EQ(bytes_of("query_up_projection"), 0);
  EXPECT_EQ(bytes_of("key_value_up_projection"), 0);
  EXPECT_EQ(bytes_of("rope"), 0);
  EXPECT_EQ(bytes_of("attention"), tokens * 8 * (2 * 24 + 4)) << "output and log-sum-exp";
  EXPECT_EQ(bytes_of("expert_activation"), 2 * 2 * tokens * 2 * 256) << "gate and up";
  EXPECT_EQ(bytes_of("expert_down_projection"), 0) << "reads the activation";
}

// A module that runs whole keeps its input, and its collectives are repeated: of an MLP under
// tensor parallelism one all-gather and one reduce-scatter of the boundary.
TEST(RecomputeTest, AModuleRepeatsItsCollectives) {
  ParallelPlan plan = plan_of(2, 1, 1, 0);
  const auto tensor = static_cast<std::size_t>(Axis::kTensor);
  const SimulationResult none = run(small_model(), plan);
  plan.recomputing.kind = Recompute::kSelective;
  plan.recomputing.modules = {RecomputeModule::kMlp};
  const SimulationResult again = run(small_model(), plan);
  const std::int64_t boundary = 256 * 512 * 2;
  EXPECT_EQ((again.bytes_by_axis[tensor] - none.bytes_by_axis[tensor]).value(),
            4 * 4 * 2 * boundary);
  const Layer block = block_of(small_model(), plan);
  const std::int64_t width = 1024 / 2;
  EXPECT_EQ((block.saved() - kept(ops_again(block, plan))).value(), 2 * 256 * 3 * width);
}

// Norms and activations communicate nothing; experts that run again are dispatched and combined a
// third time.
TEST(RecomputeTest, OnlyExpertsThatRunAgainAreSentAgain) {
  ParallelPlan plan = plan_of(1, 4, 1, 1);
  plan.mesh.ep = 4;
  const ModelSpec model = with_everything();
  const auto expert = static_cast<std::size_t>(Axis::kExpert);
  const Bytes none = run(model, plan).bytes_by_axis[expert];
  plan.recomputing.kind = Recompute::kSelective;
  using enum RecomputeModule;
  plan.recomputing.modules = {kNorm, kActivation, kLatentUp, kSharedExperts};
  EXPECT_EQ(run(model, plan).bytes_by_axis[expert], none);
  plan.recomputing.modules = {kExperts};
  EXPECT_EQ(run(model, plan).bytes_by_axis[expert], 3 * (none / 2));
}

// The same if the experts copy the tokens that arrive, and permute and unpermute have no kernels.
TEST(RecomputeTest, ExpertsRunAgainBehindATwoLevelDispatch) {
  ParallelPlan plan = plan_of(1, 4, 1, 1);
  plan.mesh.ep = 4;
  plan.experts.dispatch = Dispatch::kTwoLevel;
  plan.recomputing.kind = Recompute::kNone;
  const auto expert = static_cast<std::size_t>(Axis::kExpert);
  ModelSpec with_norms = with_everything();  // norms that read and keep what comes back
  with_norms.norms.post = true;
  for (const ModelSpec& model : {with_everything(), with_norms}) {
    const SimulationResult none = run(model, plan);
    for (const ParallelPlan& way : ways(model, plan)) run(model, way);
    ParallelPlan again = plan;
    again.recomputing.kind = Recompute::kSelective;
    again.recomputing.modules = {RecomputeModule::kExperts};
    EXPECT_EQ(run(model, again).bytes_by_axis[expert], 3 * (none.bytes_by_axis[expert] / 2));
  }
}

// DeepSeek-V3's choice: values that are kept narrow are rounded in the forward only. A separate
// kernel widens them.
TEST(RecomputeTest, WhatIsKeptNarrowIsNotRoundedAgain) {
  ParallelPlan plan = plan_of(1, 1, 1, 0);
  plan.precision.type = DataType::kFp8;
  plan.narrow.scale_block = 128;
  plan.narrow.activation_input_type = DataType::kFp8;
  plan.narrow.attention_result_bits = 12;
  plan.recomputing.kind = Recompute::kSelective;
  using enum RecomputeModule;
  plan.recomputing.modules = {kNorm, kActivation, kLatentUp, kAttention};
  for (const bool fused : {true, false}) {
    plan.kernels.fused_elementwise = fused;
    const OpGraph graph =
        lower(with_everything(), plan, one_node(1, 100_GBps).places, ideal_chip(), {});
    double rounded = 0;  // results of attention
    double widened = 0;
    for (const Op& op : graph.programs.front().ops) {
      if (op.kind != OpKind::kCompute) continue;
      for (const Kernel& kernel : graph.compute_works[op.work].kernels) {
        if (kernel.name == "round_result") rounded += 1;
        if (kernel.name == "widen_result") widened += 1;
      }
    }
    EXPECT_EQ(rounded, 4 * 4) << "blocks and micro-batches";
    EXPECT_EQ(widened, rounded);
    run(with_everything(), plan);
  }
}

// A group of n consecutive blocks keeps one input, and before the backward of the last block all n
// run again. 8 blocks in groups of 3, 3 and 2 keep 3 inputs, and at most 3 whole blocks.
TEST(RecomputeTest, SeveralBlocksShareOneInput) {
  const ModelSpec model = small_model(8);
  ParallelPlan plan = plan_of(1, 1, 1, 0);
  plan.recomputing.kind = Recompute::kFull;
  const SimulationResult single = run(model, plan);
  plan.recomputing.block = 3;
  const SimulationResult grouped = run(model, plan);
  EXPECT_EQ(grouped.flops, single.flops) << "every block runs again once";
  const Layer block = block_of(model, plan);
  const Bytes input(2 * 256 * 512);
  const Bytes ids(256 * 8);
  // The peak is in the group of three in the middle, or the head with the last inputs.
  const Bytes three = 3 * block.saved();
  EXPECT_EQ(grouped.memory_peaks[0].by_category[kActivations], ids + input + three);
  EXPECT_EQ(single.memory_peaks[0].by_category[kActivations], ids + 7 * input + block.saved());
}

// Repeated activations stay until the weight gradients if these come later. Groups save inputs of
// micro-batches in flight: of 4 on the first of 4 stages, only the one that goes backwards is held
// whole.
TEST(RecomputeTest, GroupsSaveInputsInFlightWithSplitBackwards) {
  const ModelSpec model = small_model(8);
  ParallelPlan plan = plan_of(1, 1, 4, 0);
  plan.batch.global_batch = 8;
  plan.pipeline.schedule = ScheduleName::kZeroBubbleH1;
  plan.recomputing.kind = Recompute::kFull;
  const SimulationResult single = run(model, plan);
  plan.recomputing.block = 2;
  const SimulationResult grouped = run(model, plan);
  EXPECT_EQ(grouped.flops, single.flops);
  const auto activations = [](const SimulationResult& result, std::size_t rank) {
    return result.memory_peaks[rank].by_category[kActivations];
  };
  const Bytes input(2 * 256 * 512);
  // While the second block goes backwards the first is held whole. Without a group the first comes
  // back when only what the weight gradients read is left of the second: the same bytes, except for
  // the log-sum-exp.
  const Bytes statistics(256 * 8 * 4);
  EXPECT_EQ(activations(single, 0) - activations(grouped, 0), 3 * input - statistics)
      << "of 2 blocks, one";
  EXPECT_EQ(activations(grouped, 3) - activations(single, 3), statistics)
      << "none waits on the last stage";
}

// FSDP gathers a block for its forward, for the forward again, and for its backward; the last one
// of a group only twice.
TEST(RecomputeTest, GroupsAreGatheredOnceMore) {
  const ModelSpec model = small_model(4);
  ParallelPlan plan = plan_of(1, 4, 1, 3);
  plan.recomputing.kind = Recompute::kFull;
  const auto data = static_cast<std::size_t>(Axis::kData);
  const SimulationResult single = run(model, plan);
  plan.recomputing.block = 4;
  const SimulationResult grouped = run(model, plan);
  const std::int64_t weights = 2 * block_of(model, plan).parameters();
  EXPECT_EQ((grouped.bytes_by_axis[data] - single.bytes_by_axis[data]).value(), 3 * 3 * weights * 4)
      << "3 blocks, of each 3/4 to 4 ranks, 4 micro-batches";
}

// Only the first layers of each stage: 1 of 2.
TEST(RecomputeTest, LayersBeyondTheFirstAreLeftAlone) {
  ParallelPlan plan = plan_of(1, 1, 2, 0);
  const SimulationResult none = run(small_model(), plan);
  plan.recomputing.kind = Recompute::kFull;
  const SimulationResult all = run(small_model(), plan);
  plan.recomputing.layers = 1;
  const SimulationResult half = run(small_model(), plan);
  EXPECT_DOUBLE_EQ(2 * (half.flops - none.flops).value(), (all.flops - none.flops).value());
}

TEST(RecomputeTest, GroupsAndFirstLayersRunWithEveryAxis) {
  for (const ModelSpec& model : kinds()) {
    SCOPED_TRACE(model.name);
    for (const std::int64_t block : {2, 3}) {
      for (const std::int64_t layers : {0, 2}) {
        std::vector<ParallelPlan> plans = {plan_of(2, 2, 2, 1), plan_of(2, 2, 1, 2)};
        plans.push_back(plan_of(1, 4, 1, 3));
        plans.push_back(plan_of(1, 4, 1, 3));
        plans.back().state.reshard_after_forward = plans.back().state.zero != 3;
        plans.push_back(plan_of(2, 1, 2, 0));
        plans.back().pipeline.schedule = ScheduleName::kZeroBubbleH1;
        plans.push_back(plan_of(2, 1, 2, 0));
        plans.back().pipeline.schedule = ScheduleName::kDualPipe;
        for (ParallelPlan& plan : plans) {
          plan.recomputing.kind = Recompute::kFull;
          plan.recomputing.block = block;
          if (layers > 0) plan.recomputing.layers = layers;
          run(model, plan);
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepsim
