#include "schedules/plan/balanced_layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/published_models.h"

namespace stepsim {
namespace {

using Sizes = std::vector<std::int64_t>;

TEST(BalancedLayoutTest, TheLargestSumIsTheSmallestPossible) {
  const std::vector<double> costs = {1, 1, 1, 3};
  EXPECT_EQ(divide_evenly(costs, 2, 0), (Sizes{3, 1}));
  const std::vector<double> alike(12, 1.0);
  EXPECT_EQ(divide_evenly(alike, 4, 0), (Sizes{3, 3, 3, 3}));
  // The head costs two layers: 3, 3, 4 and 2 + 2; 4, 4, 3, 1 has the same squares, and longer parts
  // in front.
  EXPECT_EQ(divide_evenly(alike, 4, 2), (Sizes{3, 3, 4, 2}));
  // The last has 6 however the others are divided; then they are as even as they can be.
  EXPECT_EQ(divide_evenly(std::vector<double>{1, 1, 1, 1, 6}, 3, 0), (Sizes{2, 2, 1}));
  EXPECT_EQ(divide_evenly(alike, 12, 0), Sizes(12, 1));
  EXPECT_EQ(divide_evenly(alike, 1, 5), (Sizes{12}));
}

// All ways to cut ten layers of made-up costs into three parts.
TEST(BalancedLayoutTest, NoOtherDivisionIsBetter) {
  const std::vector<double> costs = {5, 1, 4, 2, 8, 3, 1, 6, 2, 7};
  const auto sum = [&](std::size_t from, std::size_t until) {
    return std::accumulate(costs.begin() + static_cast<std::ptrdiff_t>(from),
                           costs.begin() + static_cast<std::ptrdiff_t>(until), 0.0);
  };
  for (const double head : {0.0, 3.0, 20.0}) {
    double least = 1e9;
    for (std::size_t one = 1; one < costs.size() - 1; ++one) {
      for (std::size_t two = one + 1; two < costs.size(); ++two) {
        least =
            std::min(least, std::max({sum(0, one), sum(one, two), sum(two, costs.size()) + head}));
      }
    }
    const Sizes sizes = divide_evenly(costs, 3, head);
    const auto one = static_cast<std::size_t>(sizes[0]);
    const auto two = one + static_cast<std::size_t>(sizes[1]);
    EXPECT_EQ(std::max({sum(0, one), sum(one, two), sum(two, costs.size()) + head}), least);
  }
}

// The head of Llama 3 8B, 128,256 x 4,096, costs 2.4 of its layers in matmuls. Of layouts whose
// longest stage has 9 layers this is the most even one: the last has 6 + 2.4, not 5 + 2.4.
TEST(BalancedLayoutTest, TheLastStageHasFewerLayers) {
  ParallelPlan plan;
  plan.mesh.pp = 4;
  plan.batch.sequence = 4096;
  EXPECT_EQ(balanced_layout(plan, llama3_8b()), (Sizes{8, 9, 9, 6}));
}

// Chunks of a rank count together: ranks have what stages of one chunk would. The two chunks of a
// rank are as even as that allows, with the longer one second; of the last rank's, 2 + 2.4 beside
// 4. Stage s is chunk s / 4 of rank s % 4.
TEST(BalancedLayoutTest, TheSumOfARankCounts) {
  ParallelPlan plan;
  plan.mesh.pp = 4;
  plan.pipeline.chunks = 2;
  plan.pipeline.schedule = ScheduleName::kInterleaved;
  plan.batch.sequence = 4096;
  const Sizes layout = balanced_layout(plan, llama3_8b());
  ASSERT_EQ(layout.size(), 8U);
  Sizes ranks(4, 0);
  for (std::size_t stage = 0; stage < 8; ++stage) ranks[stage % 4] += layout[stage];
  EXPECT_EQ(ranks, (Sizes{8, 9, 9, 6}));
  EXPECT_EQ(layout, (Sizes{4, 4, 4, 4, 4, 5, 5, 2}));
}

TEST(BalancedLayoutTest, EvenStagesDifferByOneAndTheLastIsNoneOfTheLonger) {
  ParallelPlan plan;
  plan.mesh.pp = 5;
  EXPECT_EQ(even_layout(plan, llama3_8b()), (Sizes{6, 6, 7, 7, 6}));
  plan.mesh.pp = 8;
  EXPECT_EQ(even_layout(plan, llama3_8b()), Sizes(8, 4));
}

}  // namespace
}  // namespace stepsim
