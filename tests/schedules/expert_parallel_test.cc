// Expert parallelism in a training step: the messages, the ranks that compute, and the plans that
// are refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "schedules/lowering/lower.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/expert_places.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

// 8 experts, 2 per token, in 4 blocks.
ModelSpec small_experts() {
  ModelSpec model = small_model();
  model.experts = {.routed = 8, .per_token = 2, .intermediate = 256};
  return model;
}

// 4 micro-batches of 256 tokens on each rank.
ParallelPlan plan_of(std::int64_t ep) {
  ParallelPlan plan;
  plan.mesh.dp = ep;
  plan.mesh.ep = ep;
  plan.batch.global_batch = ep * 4;
  plan.batch.sequence = 256;
  return plan;
}

Cluster nodes_of(int nodes, int gpus) {
  DgxSuperPodSpec spec;
  spec.nodes = nodes;
  spec.gpus_per_node = gpus;
  return cluster_of(spec);
}

SimulationResult run(const ModelSpec& model, const ParallelPlan& plan, const Cluster& cluster,
                     SimulationOptions options = {}) {
  const auto problems = check(plan, model, cluster.places);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.field << problem.message;
  return simulate(lower(model, plan, cluster.places, cluster.chip, {}), cluster, options);
}

double sent_by_experts(const SimulationResult& result) {
  return static_cast<double>(result.bytes_by_axis[static_cast<std::size_t>(Axis::kExpert)].value());
}

// Returns the bytes that arrive at GPU `gpu` of node 0 from its switch.
double arrived(const SimulationResult& result, const Cluster& cluster, int gpu) {
  const std::string name = "node0.nvswitch>node0.gpu" + std::to_string(gpu);
  for (const LinkTotal& total : result.links) {
    if (cluster.fabric.link_name(total.link) == name) return total.bytes;
  }
  ADD_FAILURE() << name;
  return 0;
}

constexpr double kToken = 512 * 2;            // bytes
constexpr double kCopies = 256 * 2 * kToken;  // bytes of a rank in one all-to-all
constexpr double kEachWay = 2 * 4 * 4;        // all-to-alls: forward and backward of 4 blocks
                                              // and 4 micro-batches

// 2 of 8 experts miss a node of 4 with probability C(4, 2) / C(8, 2) = 6/28, and a rank of 2 with
// 15/28. Each rank sends the other node what is not missed, and hands what two ranks of its rail
// have for its neighbour on to it.
TEST(ExpertParallelTest, TwoLevelsSendACopyForEachNode) {
  ParallelPlan plan = plan_of(4);
  plan.experts.dispatch = Dispatch::kTwoLevel;
  for (const Granularity granularity : {Granularity::kPipelined, Granularity::kStepped}) {
    const SimulationResult result =
        run(small_experts(), plan, nodes_of(2, 2), {.granularity = granularity});
    const double copies = 22.0 / 28 + 2 * 13.0 / 28;
    EXPECT_NEAR(sent_by_experts(result) / (4 * 256 * kToken * copies * 2 * kEachWay), 1, 1e-5);
  }
}

// One copy of a token for each rank of the node that has any of its experts, not one for each.
TEST(ExpertParallelTest, TwoLevelsInOneNodeSendACopyForEachRank) {
  ParallelPlan plan = plan_of(4);
  plan.experts.dispatch = Dispatch::kTwoLevel;
  const SimulationResult result = run(small_experts(), plan, one_node(4, 100_GBps));
  EXPECT_NEAR(sent_by_experts(result) / (4 * 256 * kToken * 3 * 13.0 / 28 * 2 * kEachWay), 1, 1e-5);
}

// A token reaches each rank of its experts once, and is copied there for each of them. Of the
// tokens of all 4 ranks 13/28 have an expert on a rank. Sent to each expert, they are copied
// before.
TEST(ExpertParallelTest, TwoLevelsCopyTokensWhereTheyArrive) {
  for (const Dispatch dispatch : {Dispatch::kTwoLevel, Dispatch::kAllToAll}) {
    ParallelPlan plan = plan_of(4);
    plan.experts.dispatch = dispatch;
    const Cluster cluster = one_node(4, 100_GBps);
    const OpGraph graph = lower(small_experts(), plan, cluster.places, cluster.chip, {});
    double read = 0;
    for (const ComputeWork& work : graph.compute_works) {
      for (const Kernel& kernel : work.kernels) {
        if (kernel.name == "permute") {
          read = std::max(read, static_cast<double>(kernel.read.value()));
        }
      }
    }
    const bool two_level = dispatch == Dispatch::kTwoLevel;
    EXPECT_NEAR(read / kToken, two_level ? 4 * 256 * 13.0 / 28 : 256, two_level ? 1 : 0);
  }
}

// Ranks hold 5, 2, 2 and 3 twelfths of the load. Rank r receives 3 shares of its own load from the
// others, and gets back what the others hold. That is 22, 16, 16 and 18 twelfths of a rank's copies
// in all, where an even load has 18 for each. So the links gain and lose 4, -2, -2 and 0, and
// nothing in all.
TEST(ExpertParallelTest, SkewedLoadsSendUnevenBytes) {
  const Cluster cluster = one_node(4, 100_GBps);
  ModelSpec model = small_experts();
  const SimulationResult even = run(model, plan_of(4), cluster);
  model.experts.load = {4, 1, 1, 1, 1, 1, 1, 2};
  const SimulationResult skewed = run(model, plan_of(4), cluster);
  const double twelfths[] = {4, -2, -2, 0};
  for (int gpu = 0; gpu < 4; ++gpu) {
    EXPECT_NEAR(arrived(skewed, cluster, gpu) - arrived(even, cluster, gpu),
                kEachWay * kCopies * twelfths[gpu] / 12, 100)
        << gpu;
  }
  EXPECT_NEAR(sent_by_experts(skewed), sent_by_experts(even), 1000);
}

// The same FLOPs are done, but the others wait for the rank of the hot experts.
TEST(ExpertParallelTest, HotExpertsTakeLonger) {
  const Cluster cluster = one_node(4, Bandwidth(1e30));
  ModelSpec model = small_experts();
  const SimulationResult even = run(model, plan_of(4), cluster);
  model.experts.load = {4, 1, 1, 1, 1, 1, 1, 2};
  const SimulationResult skewed = run(model, plan_of(4), cluster);
  EXPECT_NEAR(skewed.flops.value() / even.flops.value(), 1, 1e-3);
  EXPECT_GT(skewed.step_time, even.step_time);
  EXPECT_GT(skewed.breakdowns[0].compute, even.breakdowns[0].compute);
  EXPECT_LT(skewed.breakdowns[1].compute, even.breakdowns[1].compute);
}

// At its even share an expert takes 256 of the 2,048 copies of all ranks. The two hot ones get 683
// and 341, so 512 are dropped, a quarter of all. Dropped copies are not sent either.
TEST(ExpertParallelTest, CopiesBeyondTheCapacityAreDropped) {
  const Cluster cluster = one_node(4, 100_GBps);
  ModelSpec model = small_experts();
  model.experts.load = {4, 1, 1, 1, 1, 1, 1, 2};
  const SimulationResult all = run(model, plan_of(4), cluster);
  model.experts.capacity_factor = 1;
  const SimulationResult cut = run(model, plan_of(4), cluster);
  EXPECT_NEAR(sent_by_experts(cut) / sent_by_experts(all), 0.75, 1e-4);
  // Three matrices of 512 x 256 a copy, forward and backward.
  EXPECT_NEAR((all.flops - cut.flops).value() / (512 * 6.0 * 3 * 512 * 256 * 4 * 4), 1, 0.01);
}

// With etp the ranks of an expert gather each other's tokens, more where it is hot.
TEST(ExpertParallelTest, SkewedLoadsRunWithTheOtherAxes) {
  ModelSpec model = small_experts();
  model.experts.load = {4, 1, 1, 1, 1, 1, 1, 2};
  for (const Dispatch dispatch : {Dispatch::kAllToAll, Dispatch::kTwoLevel}) {
    ParallelPlan plan = plan_of(4);
    plan.mesh.tp = 2;
    plan.mesh.pp = 2;
    plan.mesh.etp = 2;
    plan.mesh.ep = 2;
    plan.experts.dispatch = dispatch;
    plan.recomputing.kind = Recompute::kFull;
    EXPECT_GT(sent_by_experts(run(model, plan, nodes_of(4, 4))), 0);
  }
}

TEST(ExpertParallelTest, SkewedLoadsMoveWholeElements) {
  ModelSpec model = small_experts();
  model.experts.load = {3, 2, 2, 2, 3, 2, 3, 3};
  ParallelPlan plan = plan_of(4);
  plan.mesh.etp = 2;
  plan.mesh.ep = 2;
  const Cluster cluster = one_node(4, 100_GBps);
  const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
  for (const CollectiveWork& work : graph.collective_works) {
    if (work.byte_matrix) continue;
    EXPECT_EQ(work.bytes.value() % size_of(work.type).value(), 0) << work.bytes.value();
  }
  EXPECT_GT(sent_by_experts(run(model, plan, cluster)), 0);
}

// Tokens and gradients go to the experts in one byte, results and gradients back in two.
TEST(ExpertParallelTest, EachWayHasItsOwnType) {
  ParallelPlan plan = plan_of(4);
  const Cluster cluster = one_node(4, 100_GBps);
  const double wide = sent_by_experts(run(small_experts(), plan, cluster));
  plan.precision.dispatch_type = DataType::kFp8;
  EXPECT_EQ(sent_by_experts(run(small_experts(), plan, cluster)) / wide, 0.75);
  plan.narrow.scale_block = 128;  // 4 bytes more for each 128
  EXPECT_EQ(sent_by_experts(run(small_experts(), plan, cluster)) / wide, 0.5 + 0.25 * 132 / 128);
}

Duration exposed(const SimulationResult& result) {
  return result.breakdown.exposed_communication[static_cast<std::size_t>(Axis::kExpert)];
}

// Both hide the same bytes. Alternating with another micro-batch hides nearly all of them; running
// beside the shared experts hides as much time as those take.
TEST(ExpertParallelTest, AllToAllsHideBesideOtherWork) {
  ModelSpec model = small_experts();
  model.experts.shared_intermediate = 1024;
  ParallelPlan plan = plan_of(4);
  plan.batch.global_batch = 4 * 16;
  const Cluster cluster = one_node(4, 100_GBps);
  const SimulationResult none = run(model, plan, cluster);
  plan.pieces.overlap_shared_experts = true;
  const SimulationResult shared = run(model, plan, cluster);
  plan.pieces.overlap_shared_experts = false;
  plan.overlap.expert_parallel = true;
  const SimulationResult fused = run(model, plan, cluster);
  EXPECT_LT(exposed(shared), exposed(none));
  EXPECT_LT(4 * exposed(fused), exposed(none));
  EXPECT_EQ(shared.flops.value(), none.flops.value());
  EXPECT_EQ(fused.flops.value(), none.flops.value());
  EXPECT_EQ(sent_by_experts(shared), sent_by_experts(none));
  EXPECT_EQ(sent_by_experts(fused), sent_by_experts(none));
  // Its forward begins before its backward has released anything.
  EXPECT_GT(fused.memory_peaks[0].bytes, none.memory_peaks[0].bytes);
}

TEST(ExpertParallelTest, OverlapsRunWithTheOtherAxes) {
  ModelSpec model = small_experts();
  model.experts.shared_intermediate = 1024;
  for (const Recompute recompute : {Recompute::kNone, Recompute::kMatmuls, Recompute::kFull}) {
    for (const ScheduleName schedule :
         {ScheduleName::kOneForwardOneBackward, ScheduleName::kEagerOneForwardOneBackward,
          ScheduleName::kInterleaved, ScheduleName::kZeroBubbleH1}) {
      ParallelPlan plan = plan_of(2);
      plan.mesh.pp = 2;
      plan.state.zero = 2;
      plan.pipeline.schedule = schedule;
      plan.recomputing.kind = recompute;
      plan.batch.global_batch = 2 * 8;
      plan.pieces.overlap_shared_experts = true;
      run(model, plan, one_node(4, 100_GBps));
      if (schedule == ScheduleName::kZeroBubbleH1) continue;  // splits its backwards
      plan.pieces.overlap_shared_experts = false;
      plan.overlap.expert_parallel = true;
      run(model, plan, one_node(4, 100_GBps));
    }
  }
}

TEST(ExpertParallelTest, FindsTheRanksOfANode) {
  const Cluster cluster = nodes_of(4, 4);
  ParallelPlan plan = plan_of(16);
  EXPECT_EQ(ranks_of_expert_node(plan.mesh, cluster.places), 4);
  plan.mesh.dp = 8;
  plan.mesh.tp = 2;
  EXPECT_EQ(ranks_of_expert_node(plan.mesh, cluster.places), 4);
  plan.mesh.ep = 8;
  plan.mesh.etp = 2;
  EXPECT_EQ(ranks_of_expert_node(plan.mesh, cluster.places), 2);
  plan.mesh.order = {PlanAxis::kData, PlanAxis::kContext, PlanAxis::kTensor, PlanAxis::kPipeline};
  EXPECT_EQ(ranks_of_expert_node(plan.mesh, cluster.places), 2)
      << "the experts' mesh is of its own";
  EXPECT_EQ(ranks_of_expert_node(plan_of(4).mesh, ring_of(4, 1_GBps).places), 0);
}

std::vector<std::string> problems_of(const ModelSpec& model, const ParallelPlan& plan,
                                     const Cluster& cluster) {
  std::vector<std::string> texts;
  for (const Problem& problem : check(plan, model, cluster.places)) {
    texts.push_back(problem.field + " " + problem.message);
  }
  return texts;
}

TEST(ExpertParallelTest, RefusesWhatDoesNotFitTheModelOrTheCluster) {
  using Texts = std::vector<std::string>;
  ParallelPlan plan = plan_of(4);
  plan.experts.dispatch = Dispatch::kTwoLevel;
  plan.precision.combine_type = DataType::kFp16;
  EXPECT_EQ(problems_of(small_model(), plan, one_node(4, 1_GBps)),
            (Texts{"ep is 4, but the model has no routed experts: 1",
                   "dispatch is two_level, but the model has no routed experts: all_to_all",
                   "combine_dtype is fp16, but the model has no routed experts: leave it out"}));
  plan = plan_of(6);
  EXPECT_EQ(problems_of(small_experts(), plan, one_node(6, 1_GBps)),
            (Texts{"ep is 6, which does not divide the model's routed experts (8); nearest: 4 or "
                   "8"}));
  plan = plan_of(4);
  plan.experts.node_limit = 2;
  EXPECT_EQ(problems_of(small_experts(), plan, one_node(4, 1_GBps)),
            (Texts{"node_limit is 2, but a copy for each expert goes straight to it (dispatch = "
                   "all_to_all): 0, or dispatch = two_level"}));
  plan.experts.dispatch = Dispatch::kTwoLevel;
  plan.experts.node_limit.reset();
  EXPECT_EQ(problems_of(small_experts(), plan, ring_of(4, 1_GBps)),
            (Texts{"dispatch is two_level, but the 4 ranks of ep do not stand in nodes, as many in "
                   "each and in the same places of it: all_to_all, or another order or map"}));
  plan.experts.expert_node = 4;
  EXPECT_EQ(problems_of(small_experts(), plan, nodes_of(2, 2)),
            (Texts{"expert_node is 4, but in each node of the cluster 2 neighbouring ranks of ep "
                   "stand: 2, or 0 for as many as there are"}));
  plan = plan_of(4);
  plan.pieces.overlap_shared_experts = true;
  plan.overlap.expert_parallel = true;
  plan.pipeline.schedule = ScheduleName::kGPipe;
  EXPECT_EQ(
      problems_of(small_experts(), plan, one_node(4, 1_GBps)),
      (Texts{"overlap_shared_experts is true, but the model has no shared experts: false",
             "overlap_shared_experts is true, but fused forwards and backwards run beside the "
             "all-to-alls already: false",
             "overlap_expert_parallel is true, but gpipe with 4 micro-batches never has a "
             "forward right behind a whole backward: eager_1f1b, interleaved_1f1b, or 1f1b on "
             "one stage"}));
}

}  // namespace
}  // namespace stepsim
