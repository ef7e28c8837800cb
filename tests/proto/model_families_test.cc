// Every model of the catalog runs under every kind of plan: with data, tensor, pipeline, expert and
// context parallelism, and passes of inference. Memory and bytes are checked in each run.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"
#include "schedules/lowering/lower.h"
#include "schedules/plan/inference_plan.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr int kChips = 8;

// A few layers of each kind: the first ones, of an encoder-decoder two of each side.
ModelSpec shortened(ModelSpec model) {
  constexpr std::int64_t kLayers = 8;
  if (model.mixer_pattern.find('X') != std::string::npos) {
    model.mixer_pattern = "NNXX";
    model.layers = 4;
  }
  model.layers = std::min(model.layers, kLayers);
  return model;
}

// Returns the model's first problem with the plan, or runs a step.
void run(const ModelSpec& model, ParallelPlan plan, const std::string& what) {
  SCOPED_TRACE(model.name + ", " + what);
  static const Cluster cluster = one_node(kChips, 100_GBps);
  plan.batch.sequence = 512;
  plan.batch.global_batch = 2 * plan.mesh.dp;
  const std::vector<Problem> problems = check(plan, model, cluster.places);
  ASSERT_TRUE(problems.empty()) << problems.front().field << ": " << problems.front().message;
  const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
  EXPECT_GT(simulate(graph, cluster, {}).step_time, Duration(0));
}

// Runs a pass, or returns without one where the model makes none of this kind.
void run_pass(const ModelSpec& model, Inference inference, ParallelPlan plan) {
  SCOPED_TRACE(model.name + ", " + std::string(name_of(inference)));
  static const Cluster cluster = one_node(kChips, 100_GBps);
  plan.pass.inference = inference;
  plan.batch.global_batch = 2 * plan.mesh.dp;
  plan.batch.sequence = inference == Inference::kPrefill ? 64 : 0;
  plan.pass.context = inference == Inference::kPrefill ? 0 : 300;
  complete_inference(model, plan);
  const std::vector<Problem> problems = check(plan, model, cluster.places);
  const auto of_the_model = std::ranges::find(problems, "inference", &Problem::field);
  if (of_the_model != problems.end() && (!model.attention.causal || !model.mixer_pattern.empty()))
    return;
  ASSERT_TRUE(problems.empty()) << problems.front().field << ": " << problems.front().message;
  const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
  EXPECT_GT(simulate(graph, cluster, {}).step_time, Duration(0));
}

// Returns the most tensor ranks, up to 8, that the model allows.
std::int64_t tensor_ranks(const ModelSpec& model) {
  for (std::int64_t tp = kChips; tp > 1; tp /= 2) {
    ParallelPlan plan;
    plan.mesh.tp = tp;
    plan.batch.sequence = 512;
    if (check(plan, model, one_node(static_cast<int>(tp), 100_GBps).places).empty()) return tp;
  }
  return 1;
}

TEST(ModelFamiliesTest, EveryModelRunsUnderEveryPlan) {
  for (const std::string& name : list(CatalogKind::kModel)) {
    const ModelSpec model = shortened(load_model(name));
    ParallelPlan sharded;
    sharded.mesh.dp = kChips;
    sharded.state.zero = 3;
    sharded.recomputing.kind = Recompute::kFull;
    run(model, sharded, "FSDP");
    ParallelPlan tensor;
    tensor.mesh.tp = tensor_ranks(model);
    tensor.mesh.dp = kChips / tensor.mesh.tp;
    run(model, tensor, "tp " + std::to_string(tensor.mesh.tp));
    ParallelPlan pipeline;
    pipeline.mesh.pp = std::min<std::int64_t>(4, model.layers);
    pipeline.mesh.dp = kChips / pipeline.mesh.pp;
    // Weights that layers of the whole model share are on one stage.
    if (model.layers % pipeline.mesh.pp == 0 && model.shared.blocks == 0) {
      run(model, pipeline, "pipeline");
    }
    if (model.mixer_pattern.find('X') == std::string::npos) {
      ParallelPlan context;
      context.mesh.cp = 4;
      context.mesh.dp = 2;
      context.tensor.cp_mode = ContextMode::kAllGather;
      run(model, context, "cp 4");
    }
    if (model.experts.routed % kChips != 0 || model.experts.routed == 0) continue;
    ParallelPlan experts;
    experts.mesh.dp = experts.mesh.ep = kChips;
    run(model, experts, "ep 8");
  }
}

TEST(ModelFamiliesTest, EveryModelRunsPassesOfInference) {
  for (const std::string& name : list(CatalogKind::kModel)) {
    const ModelSpec model = shortened(load_model(name));
    for (const Inference inference : {Inference::kPrefill, Inference::kDecode}) {
      ParallelPlan tensor;
      tensor.mesh.tp = tensor_ranks(model);
      tensor.mesh.dp = kChips / tensor.mesh.tp;
      for (const bool divides : {false, true}) {
        tensor.tensor.sequence_parallel = divides;
        run_pass(model, inference, tensor);
      }
      ParallelPlan data;
      data.mesh.dp = kChips;
      if (model.experts.routed % kChips == 0 && model.experts.routed > 0) data.mesh.ep = kChips;
      run_pass(model, inference, data);
      ParallelPlan pipeline;
      pipeline.mesh.pp = std::min<std::int64_t>(4, model.layers);
      pipeline.mesh.dp = kChips / pipeline.mesh.pp;
      if (model.layers % pipeline.mesh.pp == 0 && model.shared.blocks == 0) {
        run_pass(model, inference, pipeline);
      }
    }
    const bool keeps_tokens_only = std::ranges::none_of(kinds_of(model), [](const BlockKind& kind) {
      return kind.has_state() || kind.mixer == Mixer::kSparse || kind.mixer == Mixer::kCross ||
             kind.is_compressed();
    });
    if (!keeps_tokens_only) continue;
    ParallelPlan context;
    context.mesh.cp = 4;
    context.mesh.dp = 2;
    for (const ContextMode mode :
         {ContextMode::kAllGather, ContextMode::kZigzagRing, ContextMode::kRing}) {
      context.tensor.cp_mode = mode;
      run_pass(model, Inference::kPrefill, context);
    }
  }
}

}  // namespace
}  // namespace stepsim
