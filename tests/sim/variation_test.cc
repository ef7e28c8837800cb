#include "sim/program/variation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/program/graph_by_hand.h"
#include "sim/program/variation_fields.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

// `ranks` ranks, each `ops` kernels of a millisecond one after another.
OpGraph alone(std::uint32_t ranks, std::uint32_t ops) {
  GraphByHand graph(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t op = 0; op < ops; ++op) graph.compute(rank, Flops(1e12));
  }
  return graph.build();
}

double seconds(const OpGraph& graph, SimulationOptions options = {}) {
  const Cluster cluster = one_node(static_cast<int>(graph.ranks.size()), Bandwidth(1e12));
  return to_seconds(simulate(graph, cluster, options).step_time);
}

TEST(VariationTest, JitterHasTheMeanAndDeviationThatItSays) {
  const Jitter jitter{.deviation = 0.05, .seed = 7};
  constexpr int kDraws = 100'000;
  double sum = 0;
  double squares = 0;
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    const double z = (factor_of(jitter, draw % 3, RankId(draw % 101), OpId(draw)) - 1) / 0.05;
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.015) << "five standard errors";
  EXPECT_NEAR(squares / kDraws, 1, 0.025);
}

TEST(VariationTest, EachPlaceAndSeedDrawsItsOwn) {
  const Jitter jitter{.deviation = 0.05, .seed = 7};
  const double one = factor_of(jitter, 1, RankId(2), OpId(3));
  EXPECT_EQ(one, factor_of(jitter, 1, RankId(2), OpId(3)));
  EXPECT_NE(one, factor_of(jitter, 0, RankId(2), OpId(3)));
  EXPECT_NE(one, factor_of(jitter, 1, RankId(3), OpId(3)));
  EXPECT_NE(one, factor_of(jitter, 1, RankId(2), OpId(4)));
  EXPECT_NE(one, factor_of({.deviation = 0.05, .seed = 8}, 1, RankId(2), OpId(3)));
}

TEST(VariationTest, AStragglerTakesItsFactorLonger) {
  OpGraph graph = alone(4, 10);
  const double before = seconds(graph);
  vary({.stragglers = {{.ranks = {RankId(2)}, .slowdown = 1.5}}}, 0, graph);
  EXPECT_NEAR(seconds(graph) / before, 1.5, 1e-9);
  EXPECT_EQ(graph.ranks[1].slowdown, 1);
}

TEST(VariationTest, ExchangedRanksRunOnOneAnothersChips) {
  OpGraph graph = alone(4, 1);
  vary({.exchanges = {{.ranks = {RankId(0), RankId(1)}, .with = {RankId(3), RankId(2)}}}}, 0,
       graph);
  for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(graph.ranks[rank].chip, 3 - rank);
}

TEST(VariationTest, ExchangesThatCannotBeAreRefused) {
  const std::vector<Problem> problems =
      check({.exchanges = {{.ranks = {RankId(0), RankId(1)}, .with = {RankId(8)}},
                           {.ranks = {RankId(2)}, .with = {RankId(0)}}}},
            8);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].field, "exchange[0].with");
  EXPECT_EQ(problems[0].message, "must be ranks of the plan, 0 to 7; has 8");
  EXPECT_EQ(problems[1].message, "must be as many ranks as rank, 2; has 1");
  EXPECT_EQ(problems[2].message, "must name each rank once; has 0 again");
}

TEST(VariationTest, TheSumOfManyKernelsHardlyJitters) {
  OpGraph graph = alone(1, 10'000);
  const double before = seconds(graph);
  vary({.jitter = 0.1}, 3, graph);
  const double after = seconds(graph);
  EXPECT_NE(after, before);
  EXPECT_NEAR(after / before, 1, 5 * 0.1 / std::sqrt(10'000.0));
}

TEST(VariationTest, TheOrderOfSimultaneousOpsChangesNothing) {
  OpGraph graph = alone(16, 20);
  vary({.jitter = 0.1}, 3, graph);
  EXPECT_EQ(seconds(graph), seconds(graph, {.shuffle_seed = 11}));
}

TEST(VariationTest, RanksAreWrittenAsRangesThatReadBack) {
  const AnyField& field = *variation_fields().find("straggler")->fields()->find("rank");
  for (const char* text : {"5", "0-3", "0-3,7", "0,2-3,5-9", "1-2,8-9"}) {
    Straggler straggler;
    EXPECT_EQ(field.read(text, &straggler), std::vector<std::string>{}) << text;
    EXPECT_EQ(field.write(&straggler), text);
  }
}

TEST(VariationTest, WhatCannotBeIsRefused) {
  const std::vector<Problem> problems =
      check({.stragglers = {{.ranks = {RankId(8)}, .slowdown = 0}, {.ranks = {}, .slowdown = 2}},
             .jitter = 0.5},
            8);
  ASSERT_EQ(problems.size(), 4U);
  // Each field's own limits come first, then the rules between fields.
  EXPECT_EQ(problems[0].field, "straggler[0].slowdown");
  EXPECT_EQ(problems[1].field, "jitter");
  EXPECT_EQ(problems[2].field, "straggler[0].rank");
  EXPECT_EQ(problems[3].field, "straggler[1].rank");
}

}  // namespace
}  // namespace stepsim
