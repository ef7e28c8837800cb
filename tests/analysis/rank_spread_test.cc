#include "experiment/step/rank_spread.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepsim {
namespace {

using namespace literals;

// Ranks that compute so long, and wait for the rest of 100 us, by turns on two stages.
SimulationResult run_of(const std::vector<Duration>& computes, OpGraph& graph,
                        std::uint32_t steps = 1) {
  SimulationResult result;
  result.steps = steps;
  for (std::size_t rank = 0; rank < computes.size(); ++rank) {
    graph.ranks.push_back({.program = ProgramId(0), .pp = static_cast<std::uint32_t>(rank % 2)});
    Breakdown parts;
    parts.compute = computes[rank];
    parts.bubble = 100us - computes[rank];
    result.breakdowns.push_back(parts);
  }
  return result;
}

TEST(RankSpreadTest, AStageIsTheMeanOfItsRanks) {
  OpGraph graph;
  const SimulationResult result = run_of({50us, 80us, 52us, 80us}, graph);
  const RankSpread spread = rank_spread(graph, result);
  ASSERT_EQ(spread.stages.size(), 2U);
  EXPECT_EQ(spread.stages[0].mean.compute, 51us);
  EXPECT_EQ(spread.stages[0].mean.bubble, 49us);
  EXPECT_EQ(spread.stages[1].mean.compute, 80us);
  EXPECT_EQ(spread.stages[1].ranks, 2U);
  EXPECT_EQ(spread.most, RankId(1)) << "of two the first";
  EXPECT_EQ(spread.least, RankId(0));
  EXPECT_EQ(spread.most_compute, 80us);
  EXPECT_EQ(spread.least_compute, 50us);
}

// 52 us is 2 % more than the mean of 51 us; a rank computes 2 us more than another, so it waits 2
// us less, 1 us less than the mean.
TEST(RankSpreadTest, ASlowRankIsNamedWithWhatItsStageWaits) {
  OpGraph graph;
  const SimulationResult result = run_of({50us, 80us, 52us, 80us}, graph);
  const RankSpread spread = rank_spread(graph, result);
  ASSERT_EQ(spread.slow.size(), 1U);
  EXPECT_EQ(spread.slow[0].rank, RankId(2));
  EXPECT_EQ(spread.slow[0].compute, 52us);
  EXPECT_EQ(spread.slow[0].of_stage, 51us);
  EXPECT_EQ(spread.slow[0].waited, 1us);
}

TEST(RankSpreadTest, TimesAreOfOneStep) {
  OpGraph graph;
  const SimulationResult result = run_of({50us, 80us}, graph, 3);
  const RankSpread spread = rank_spread(graph, result);
  EXPECT_EQ(spread.most_compute, 40us);
  EXPECT_EQ(spread.stages[0].mean.compute, 25us);
}

TEST(RankSpreadTest, WithoutBreakdownsThereAreNoStages) {
  EXPECT_TRUE(rank_spread({}, {}).stages.empty());
}

}  // namespace
}  // namespace stepsim
