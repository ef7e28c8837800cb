#include "schedules/plan/domain_share.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/small_model.h"

namespace stepsim {
namespace {

Places racks(std::uint32_t count, std::uint32_t chips = 72) {
  Places places{.levels = {{.name = "gpu", .size = chips, .members = LevelMembers::kChip},
                           {.name = "rack", .size = count, .members = LevelMembers::kRack}},
                .chips = {}};
  for (std::uint32_t chip = 0; chip < count * chips; ++chip) places.chips.emplace_back(chip);
  return places;
}

ParallelPlan plan_of(std::int64_t tp, std::int64_t dp, std::int64_t pp) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.mesh.dp = dp;
  plan.mesh.pp = pp;
  plan.batch.global_batch = dp * pp;
  plan.batch.sequence = 128;
  plan.mesh.allow_idle_chips = true;
  return plan;
}

TEST(DomainShareTest, RacksOf72GiveTheirLargestEvenShare) {
  EXPECT_EQ(domain_share(plan_of(4, 32, 1).mesh, racks(2)), 64);
  EXPECT_EQ(domain_share(plan_of(8, 8, 8).mesh, racks(8)), 64);
  EXPECT_EQ(domain_share(plan_of(1, 256, 1).mesh, racks(4)), 64);
  EXPECT_EQ(domain_share(plan_of(1, 140, 1).mesh, racks(2)), 70);  // 70 of each: half of the group
}

// 144 ranks leave no chip idle, so they can't be moved.
TEST(DomainShareTest, WithoutSpareChipsAllAreUsed) {
  EXPECT_EQ(domain_share(plan_of(4, 36, 1).mesh, racks(2)), 72);
  EXPECT_EQ(domain_share(plan_of(1, 143, 1).mesh, racks(2)), 72)
      << "143 is 11 x 13: no share is even";
}

TEST(DomainShareTest, ARunInOneDomainStaysThere) {
  EXPECT_EQ(domain_share(plan_of(8, 8, 1).mesh, racks(4)), 72);
  EXPECT_EQ(domain_share(plan_of(1, 72, 1).mesh, racks(1)), 72);
}

// Stages lie where they may: they only send messages.
TEST(DomainShareTest, StagesNeedNoEvenShare) {
  EXPECT_EQ(domain_share(plan_of(4, 1, 3).mesh, racks(2, 8)), 8);
  ParallelPlan inner = plan_of(2, 4, 2);
  inner.mesh.order = {PlanAxis::kTensor, PlanAxis::kPipeline, PlanAxis::kData, PlanAxis::kContext};
  EXPECT_EQ(domain_share(inner.mesh, racks(4, 6)), 4) << "replicas are 4 ranks apart";
}

TEST(DomainShareTest, GroupsOfExpertsAreEvenToo) {
  ParallelPlan plan = plan_of(1, 96, 1);  // 48 in each of two racks
  EXPECT_EQ(domain_share(plan.mesh, racks(2)), 48);
  plan.mesh.ep = 32;
  EXPECT_EQ(domain_share(plan.mesh, racks(2)), 72) << "48 cuts a group of 32; 32 needs three racks";
  EXPECT_EQ(domain_share(plan.mesh, racks(3)), 32);
}

TEST(DomainShareTest, RanksLieInTheFirstChipsOfEachDomain) {
  const std::vector<std::uint32_t> chips = place_ranks(plan_of(4, 32, 1).mesh, racks(2));
  EXPECT_EQ(chips[0], 0U);
  EXPECT_EQ(chips[63], 63U);
  EXPECT_EQ(chips[64], 72U);
  EXPECT_EQ(chips[127], 72U + 63U);
}

TEST(DomainShareTest, APlanMaySayHowMany) {
  ParallelPlan plan = plan_of(4, 16, 1);
  plan.mesh.chips_per_domain = 32;
  EXPECT_EQ(place_ranks(plan.mesh, racks(2))[32], 72U);
  EXPECT_EQ(check(plan, small_model(4), racks(2)), std::vector<Problem>{});
  const auto says = [&plan](std::int64_t chips, const Places& places, const char* text) {
    plan.mesh.chips_per_domain = chips;
    const std::vector<Problem> found = check(plan, small_model(4), places);
    return std::ranges::any_of(found, [text](const Problem& problem) {
      return problem.field == "chips_per_domain" && problem.message.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(says(73, racks(2), "at most 72"));
  EXPECT_TRUE(says(31, racks(2), "for 64 ranks: at least 32"));
  Places torus = racks(2);
  torus.levels[0] = {.name = "x", .size = 72, .kind = LevelKind::kTorusAxis};
  EXPECT_TRUE(says(32, torus, "no domains"));
  plan.mesh.map = {{PlanAxis::kData, {"rack"}}};
  EXPECT_TRUE(says(32, racks(2), "map says where ranks lie"));
}

}  // namespace
}  // namespace stepsim
