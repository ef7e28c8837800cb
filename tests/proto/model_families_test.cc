// Every model of the catalog runs under every kind of plan: with data, tensor, pipeline, expert and
// context parallelism. Memory and bytes are checked in each run.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"
#include "schedules/lowering/lower.h"
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
  plan.sequence = 512;
  plan.global_batch = 2 * plan.dp;
  const std::vector<Problem> problems = check(plan, model, cluster.places);
  ASSERT_TRUE(problems.empty()) << problems.front().field << ": " << problems.front().message;
  const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
  EXPECT_GT(simulate(graph, cluster, {}).step_time, Duration(0));
}

// Returns the most tensor ranks, up to 8, that the model allows.
std::int64_t tensor_ranks(const ModelSpec& model) {
  for (std::int64_t tp = kChips; tp > 1; tp /= 2) {
    ParallelPlan plan;
    plan.tp = tp;
    plan.sequence = 512;
    if (check(plan, model, one_node(static_cast<int>(tp), 100_GBps).places).empty()) return tp;
  }
  return 1;
}

TEST(ModelFamiliesTest, EveryModelRunsUnderEveryPlan) {
  for (const std::string& name : list(CatalogKind::kModel)) {
    const ModelSpec model = shortened(load_model(name));
    ParallelPlan sharded;
    sharded.dp = kChips;
    sharded.zero = 3;
    sharded.recompute = Recompute::kFull;
    run(model, sharded, "FSDP");
    ParallelPlan tensor;
    tensor.tp = tensor_ranks(model);
    tensor.dp = kChips / tensor.tp;
    run(model, tensor, "tp " + std::to_string(tensor.tp));
    ParallelPlan pipeline;
    pipeline.pp = std::min<std::int64_t>(4, model.layers);
    pipeline.dp = kChips / pipeline.pp;
    if (model.layers % pipeline.pp == 0) run(model, pipeline, "pipeline");
    if (model.mixer_pattern.find('X') == std::string::npos) {
      ParallelPlan context;
      context.cp = 4;
      context.dp = 2;
      context.cp_mode = ContextMode::kAllGather;
      run(model, context, "cp 4");
    }
    if (model.experts.routed % kChips != 0 || model.experts.routed == 0) continue;
    ParallelPlan experts;
    experts.dp = experts.ep = kChips;
    run(model, experts, "ep 8");
  }
}

}  // namespace
}  // namespace stepsim
