#include "schedules/plan/parallel_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "schedules/plan/axis.h"
#include "schedules/plan/communicators.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

ParallelPlan small_plan() {
  ParallelPlan plan;
  plan.mesh.tp = 2;
  plan.mesh.dp = 2;
  plan.mesh.pp = 2;
  plan.batch.global_batch = 8;
  plan.batch.sequence = 128;
  return plan;
}

Places eight_chips() {
  return one_node(8, Bandwidth(1e9)).places;
}

Places torus(std::initializer_list<int> sizes) {
  TorusSpec spec;
  for (const int size : sizes) spec.axes.push_back({.size = size, .wraps = size > 2});
  spec.link_bandwidth = Bandwidth(1e9);
  return cluster_of(spec).places;
}

bool mentions(const std::vector<Problem>& problems, const std::string& field,
              const std::string& text) {
  return std::ranges::any_of(problems, [&](const Problem& problem) {
    return problem.field == field && problem.message.find(text) != std::string::npos;
  });
}

TEST(ParallelPlanTest, AGoodPlanHasNoProblems) {
  EXPECT_TRUE(check(small_plan(), small_model(8), eight_chips()).empty());
}

TEST(ParallelPlanTest, ReportsEveryProblemAtOnce) {
  ParallelPlan plan = small_plan();
  plan.mesh.tp = 3;
  plan.mesh.pp = 5;
  plan.batch.global_batch = 7;
  plan.state.zero = 4;
  plan.recomputing.block = 2;
  plan.state.shard = 4;
  const auto problems = check(plan, small_model(8), eight_chips());
  EXPECT_TRUE(mentions(problems, "tp",
                       "is 3, which does not divide the model's attention heads (8); nearest: 2 or "
                       "4"));
  EXPECT_TRUE(mentions(problems, "tp", "key-value heads (4)"));
  EXPECT_TRUE(mentions(problems, "pp", "does not divide the model's layers (8)"));
  EXPECT_TRUE(mentions(problems, "global_batch",
                       "is 7, which is not a multiple of dp x microbatch = 2 x 1; nearest: 6 or "
                       "8"));
  EXPECT_TRUE(mentions(problems, "zero", "2 (and gradients) or 3 (FSDP), is 4"));
  EXPECT_TRUE(mentions(problems, "shard", "does not divide the replicas, cp x dp (2)"));
  EXPECT_TRUE(mentions(problems, "recompute_block", "recompute is none"));
  EXPECT_TRUE(mentions(problems, "ranks", "3 x 1 x 2 x 5 is more than the cluster's 8 chips"));
}

// 126 layers = 2 x 3^2 x 7 and 2,048 = 2^11 ranks of pp x dp have only 2 in common; 16 stages are 2
// of 7 layers and 14 of 8. A single stage too many in front or behind may be empty, no more.
TEST(ParallelPlanTest, StagesThatDoNotDivideTheLayersGetNumbersThatDo) {
  ParallelPlan plan = small_plan();
  plan.mesh.dp = 128;
  plan.mesh.pp = 16;
  EXPECT_TRUE(mentions(check(plan, small_model(126), eight_chips()), "pp",
                       "nearest on as many ranks: 2 (dp = 1024); or give the layers of each stage "
                       "by layout, such as layout=7,8*14,7"));
  EXPECT_TRUE(mentions(check(plan, small_model(15), eight_chips()), "pp",
                       "nearest: 15, on other numbers of ranks; or give the layers of each stage "
                       "by layout, such as layout=0,1*15"));
  EXPECT_FALSE(mentions(check(plan, small_model(9), eight_chips()), "pp", "such as layout"));
}

TEST(ParallelPlanTest, MasterWeightsAreSharedOnlyWhereTheyAreGathered) {
  ParallelPlan plan = small_plan();
  plan.buffers.shared_master = true;
  plan.update.optimizer_bytes = 2;
  const auto problems = check(plan, small_model(8), eight_chips());
  EXPECT_TRUE(mentions(problems, "shared_master", "is true, but zero is 0"));
  EXPECT_TRUE(mentions(problems, "optimizer_bytes", "is 2"));
}

TEST(ParallelPlanTest, RefusesSizesBelowOne) {
  ParallelPlan plan = small_plan();
  plan.mesh.dp = 0;
  plan.batch.microbatch_size = -1;
  const auto problems = check(plan, small_model(8), eight_chips());
  EXPECT_TRUE(mentions(problems, "dp", "must be at least 1, is 0"));
  EXPECT_TRUE(mentions(problems, "microbatch", "must be at least 1, is -1"));
}

TEST(ParallelPlanTest, IdleChipsAreOnlyLeftWhenAskedFor) {
  ParallelPlan plan = small_plan();
  plan.mesh.dp = 1;
  EXPECT_TRUE(mentions(check(plan, small_model(8), eight_chips()), "ranks", "leaves 4"));
  plan.mesh.allow_idle_chips = true;
  EXPECT_TRUE(check(plan, small_model(8), eight_chips()).empty());
}

TEST(ParallelPlanTest, RefusesAMappingThatIsUnknownDoubleOrOfAnotherSize) {
  ParallelPlan plan = small_plan();
  plan.mesh.map = {
      {PlanAxis::kTensor, {"x"}}, {PlanAxis::kData, {"x"}}, {PlanAxis::kPipeline, {"w"}}};
  auto problems = check(plan, small_model(8), torus({2, 2, 2}));
  EXPECT_TRUE(mentions(problems, "map.dp", "uses level 'x', which is mapped already"));
  EXPECT_TRUE(mentions(problems, "map.pp", "names level 'w', but the cluster has x (2), y (2)"));
  plan.mesh.map = {{PlanAxis::kTensor, {"x", "y"}}, {PlanAxis::kTensor, {"z"}}};
  problems = check(plan, small_model(8), torus({2, 2, 2}));
  EXPECT_TRUE(mentions(problems, "map.tp", "its levels have 4 places, but tp is 2"));
  EXPECT_TRUE(mentions(problems, "map.tp", "is mapped twice"));
}

TEST(ParallelPlanTest, RefusesADataTypeThatTheChipDoesNotHave) {
  ChipSpec chip = ideal_chip();
  EXPECT_TRUE(check(small_plan(), chip).empty());
  chip.set_peak(DataType::kBf16, Throughput(0));
  EXPECT_TRUE(mentions(check(small_plan(), chip), "dtype",
                       "is bf16, but ideal has a peak throughput for fp32, fp16, fp8, int8, mxfp8, "
                       "mxfp4, nvfp4, int4, fp8_block only"));
  ParallelPlan plan = small_plan();
  plan.precision.type = DataType::kFp8;
  EXPECT_TRUE(mentions(check(plan, chip), "dtype", "attention and logits compute in bf16, but"));
  plan.precision.type = DataType::kFp16;
  EXPECT_TRUE(check(plan, chip).empty());
  plan.training.optimizer = Optimizer::kMuon;
  EXPECT_TRUE(mentions(check(plan, chip), "optimizer", "Newton-Schulz steps compute in bf16, but"));
}

TEST(ParallelPlanTest, KernelsAreOfTypesThatNeedThem) {
  ParallelPlan plan = small_plan();
  plan.narrow.transpose_weights = true;
  plan.narrow.attention_result_bits = 16;
  plan.kernels.fused_attention = false;
  plan.mesh.cp = 2;
  plan.tensor.cp_mode = ContextMode::kUlysses;
  const auto problems = check(plan, small_model(8), eight_chips());
  EXPECT_TRUE(mentions(problems, "transpose_weights", "matmuls read bf16 either way round"));
  EXPECT_TRUE(mentions(problems, "attention_result_bits", "is 16, but activations are bf16: 1 to"));
  EXPECT_TRUE(mentions(problems, "attention_result_bits", "fused_attention = true"));
  EXPECT_TRUE(mentions(problems, "attention_result_bits", "with cp = 2"));
  plan = small_plan();
  plan.precision.type = DataType::kFp8;
  plan.narrow.transpose_weights = true;
  plan.narrow.attention_result_bits = 12;
  EXPECT_TRUE(check(plan, small_model(8), eight_chips()).empty());
}

TEST(ParallelPlanTest, AMarginIsOfUnitsThatTheChipHas) {
  ParallelPlan plan = small_plan();
  ChipSpec chip = ideal_chip();
  plan.kernels.sm_margin = 20;
  EXPECT_TRUE(
      mentions(check(plan, chip), "sm_margin", "is 20, but on ideal communication takes no"));
  chip.communication.units = 20;
  EXPECT_TRUE(
      mentions(check(plan, chip), "sm_margin", "is 20 of the 20 units of ideal: at most 19"));
  chip.communication.units = 21;
  EXPECT_TRUE(check(plan, chip).empty());
}

TEST(ParallelPlanTest, ALayoutHasAsManyStagesAsThePlanAndAsManyLayersAsTheModel) {
  ParallelPlan plan = small_plan();
  plan.pipeline.layout = {3, 5};
  EXPECT_TRUE(check(plan, small_model(8), eight_chips()).empty());
  plan.pipeline.layout = {4, 0, 4};
  EXPECT_TRUE(
      mentions(check(plan, small_model(8), eight_chips()), "layout", "has no layers in stage 1"));
  plan.pipeline.layout = {3, 3, 3};
  const auto problems = check(plan, small_model(8), eight_chips());
  EXPECT_TRUE(mentions(problems, "layout", "has 3 stages, but pp is 2"));
  EXPECT_TRUE(mentions(problems, "layout", "adds up to 9 layers, but the model has 8"));
}

TEST(ParallelPlanTest, RanksCountTensorFirstAndPipelineLast) {
  const ParallelPlan plan = small_plan();
  EXPECT_EQ(coordinate(plan.mesh, 5, PlanAxis::kTensor), 1);
  EXPECT_EQ(coordinate(plan.mesh, 5, PlanAxis::kData), 0);
  EXPECT_EQ(coordinate(plan.mesh, 5, PlanAxis::kPipeline), 1);
  EXPECT_EQ(place_ranks(plan.mesh, eight_chips()),
            (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// tp on z, dp on x and pp on y of a 2 x 2 x 2 torus: chip = dp + 2 pp + 4 tp.
TEST(ParallelPlanTest, AMappingLaysAxesOverLevels) {
  ParallelPlan plan = small_plan();
  plan.mesh.map = {{PlanAxis::kTensor, {"z"}}, {PlanAxis::kData, {"x"}}};
  const Places places = torus({2, 2, 2});
  ASSERT_TRUE(check(plan, small_model(8), places).empty());
  EXPECT_EQ(place_ranks(plan.mesh, places), (std::vector<std::uint32_t>{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(ParallelPlanTest, EveryPlacementUsesEachChipOnce) {
  ParallelPlan plan = small_plan();
  plan.mesh.dp = 16;
  plan.batch.global_batch = 16;
  const Places places = torus({4, 4, 4});
  for (const auto& map : std::vector<std::vector<AxisMapping>>{
           {}, {{PlanAxis::kData, {"y", "z"}}}, {{PlanAxis::kData, {"z", "x"}}}}) {
    plan.mesh.map = map;
    ASSERT_TRUE(check(plan, small_model(8), places).empty());
    const auto chips = place_ranks(plan.mesh, places);
    EXPECT_EQ(std::set<std::uint32_t>(chips.begin(), chips.end()).size(), 64U);
  }
}

TEST(CommunicatorsTest, AGroupIsTheRanksThatDifferAlongItsAxes) {
  const Communicator data = partition(small_plan().mesh, "dp", Axis::kData, {PlanAxis::kData});
  ASSERT_EQ(data.groups.size(), 4U);
  EXPECT_EQ(data.groups[1], (std::vector<RankId>{RankId(1), RankId(3)}));
  EXPECT_EQ(data.groups[2], (std::vector<RankId>{RankId(4), RankId(6)}));
  EXPECT_EQ(data.seat_of[6].group, 2U);
  EXPECT_EQ(data.seat_of[6].member, 1U);
}

// etp innermost, then ep, then edp, over the tp x cp x dp ranks of a stage in the plan's order.
TEST(CommunicatorsTest, ExpertsHaveAMeshOfTheirOwn) {
  ParallelPlan plan = small_plan();
  plan.mesh.dp = 4;
  plan.mesh.etp = 2;
  plan.mesh.ep = 2;
  const auto ranks = [](std::initializer_list<std::uint32_t> numbers) {
    std::vector<RankId> result;
    for (const std::uint32_t number : numbers) result.emplace_back(number);
    return result;
  };
  const Communicator shared =
      expert_partition(plan.mesh, "etp", Axis::kExpert, {ExpertAxis::kExpertTensor});
  EXPECT_EQ(shared.groups[1], ranks({2, 3}));
  const Communicator experts =
      expert_partition(plan.mesh, "ep", Axis::kExpert, {ExpertAxis::kExpert});
  EXPECT_EQ(experts.groups[1], ranks({1, 3}));
  const Communicator replicas =
      expert_partition(plan.mesh, "edp", Axis::kData, {ExpertAxis::kExpertData});
  EXPECT_EQ(replicas.groups[3], ranks({3, 7}));
  EXPECT_EQ(replicas.groups[4], ranks({8, 12})) << "the second stage";
  EXPECT_EQ(coordinate(plan.mesh, 13, ExpertAxis::kExpertData), 1);
}

TEST(CommunicatorsTest, NeighboursAndWhatIsAcrossThemMakeTheWhole) {
  ParallelPlan plan = small_plan();
  plan.mesh.dp = 4;
  const Communicator data = partition(plan.mesh, "dp", Axis::kData, {PlanAxis::kData});
  const Communicator inside = neighbours(data, "inside", 2);
  const Communicator across = across_neighbours(data, "across", 2);
  EXPECT_EQ(inside.groups[1], (std::vector<RankId>{RankId(4), RankId(6)}));
  EXPECT_EQ(across.groups[1], (std::vector<RankId>{RankId(2), RankId(6)}));
  EXPECT_EQ(across.seat_of[6].member, 1U);
}

TEST(CommunicatorsTest, TiedEmbeddingsJoinFirstAndLastStage) {
  ParallelPlan plan = small_plan();
  plan.mesh.pp = 4;
  const Communicator pairs = some_stages(plan.mesh, "tied", Axis::kData, {0, 3});
  ASSERT_EQ(pairs.groups.size(), 4U);
  EXPECT_EQ(pairs.groups[3], (std::vector<RankId>{RankId(3), RankId(15)}));
}

}  // namespace
}  // namespace stepsim
