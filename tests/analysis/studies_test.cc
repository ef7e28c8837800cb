// Every experiment of the table is a test: each of its rows differs from its formula as derived.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "analysis/formulas/formula_table.h"
#include "analysis/studies/run_study.h"
#include "analysis/studies/study_table.h"

namespace stepsim {
namespace {

class FormulaExperimentTest : public testing::TestWithParam<std::size_t> {};

TEST_P(FormulaExperimentTest, DiffersFromItsFormulasAsDerived) {
  const FormulaExperiment experiment = formula_experiments()[GetParam()];
  for (const ExperimentRow& row : experiment.rows()) {
    const RowOutcome outcome = run_row(experiment, row, Laboratory{});
    ASSERT_TRUE(outcome.simulated) << outcome.id << ": " << outcome.skipped;
    EXPECT_TRUE(outcome.as_expected)
        << outcome.id << ": predicted " << row.predicted << ", simulated " << *outcome.simulated
        << ", difference " << outcome.difference << ", expected " << row.expected.low << " to "
        << row.expected.high;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FormulaExperimentTest,
                         testing::Range<std::size_t>(0, formula_experiments().size()),
                         [](const testing::TestParamInfo<std::size_t>& tested) {
                           return std::string(formula_experiments()[tested.param].id);
                         });

TEST(FormulaExperimentsTest, EveryRowIsCompleteAndNamesAFormula) {
  std::set<std::string> ids;
  for (const FormulaExperiment& experiment : formula_experiments()) {
    EXPECT_FALSE(experiment.title.empty());
    EXPECT_FALSE(experiment.claim.empty());
    for (const ExperimentRow& row : experiment.rows()) {
      const std::string id = row_id(experiment, row);
      EXPECT_TRUE(ids.insert(id).second) << id << " is there twice";
      EXPECT_NE(find_formula(row.formula), nullptr) << id << ": " << row.formula;
      EXPECT_FALSE(row.regime.empty()) << id;
      EXPECT_FALSE(row.why.empty()) << id;
      EXPECT_GT(row.predicted, 0) << id;
      EXPECT_LE(row.expected.low, row.expected.high) << id;
      EXPECT_GE(row.tolerance, 0) << id;
    }
  }
}

// A range that reaches from agreement to disagreement would test nothing.
TEST(FormulaExperimentsTest, NoRangeIsSoWideThatAnythingIsExpected) {
  for (const FormulaExperiment& experiment : formula_experiments()) {
    for (const ExperimentRow& row : experiment.rows()) {
      const double width = (1 + row.expected.high) / (1 + row.expected.low);
      EXPECT_LE(width, 1.5) << row_id(experiment, row);
    }
  }
}

TEST(RunExperimentTest, JudgesARowByItsRange) {
  const FormulaExperiment experiment{
      .id = "S0", .title = "t", .claim = "c", .rows = nullptr, .sweeps = nullptr};
  ExperimentRow row{.id = "half",
                    .formula = "B1",
                    .regime = "r",
                    .predicted = 2,
                    .expected = {-0.5, -0.5},
                    .tolerance = 0.5,
                    .why = "w",
                    .simulate = [](const Laboratory&) { return 1.0; }};
  const RowOutcome inside = run_row(experiment, row, Laboratory{});
  EXPECT_EQ(inside.id, "S0.half");
  EXPECT_EQ(inside.difference, -0.5);
  EXPECT_TRUE(inside.as_expected);
  EXPECT_TRUE(inside.holds);
  row.expected = {-0.4, 0.1};
  row.tolerance = 0.4;
  const RowOutcome outside = run_row(experiment, row, Laboratory{});
  EXPECT_FALSE(outside.as_expected);
  EXPECT_FALSE(outside.holds);
}

TEST(RunExperimentTest, ANetworkModelMayHaveItsOwnRange) {
  const FormulaExperiment experiment{
      .id = "S0", .title = "t", .claim = "c", .rows = nullptr, .sweeps = nullptr};
  const ExperimentRow row{.id = "r",
                          .formula = "B1",
                          .regime = "r",
                          .predicted = 1,
                          .expected = {0.9, 1.1},
                          .why = "w",
                          .simulate =
                              [](const Laboratory& laboratory) {
                                return laboratory.fidelity == Fidelity::kLatencyBandwidth ? 1.0
                                                                                          : 2.0;
                              },
                          .expected_unshared = DifferenceRange{0, 0}};
  EXPECT_TRUE(run_row(experiment, row, {.fidelity = Fidelity::kFlow}).as_expected);
  EXPECT_TRUE(run_row(experiment, row, {.fidelity = Fidelity::kLatencyBandwidth}).as_expected);
  EXPECT_TRUE(run_row(experiment, row, {.fidelity = Fidelity::kPacket}).as_expected);
}

TEST(RunExperimentTest, WhatANetworkModelCannotRunIsSkippedWithTheReason) {
  const FormulaExperiment experiment{
      .id = "S0", .title = "t", .claim = "c", .rows = nullptr, .sweeps = nullptr};
  const ExperimentRow row{
      .id = "r",
      .formula = "B1",
      .regime = "r",
      .predicted = 1,
      .expected = {0, 0},
      .why = "w",
      .simulate = [](const Laboratory&) -> double { throw ExperimentSkipped("too large"); }};
  const RowOutcome outcome = run_row(experiment, row, Laboratory{});
  EXPECT_FALSE(outcome.simulated);
  EXPECT_EQ(outcome.skipped, "too large");
}

TEST(RunExperimentTest, ASweepIsALineThroughAllOfTheAxisAndAPointForEachRun) {
  const Sweep sweep{.name = "s",
                    .title = "t",
                    .x = {.label = "x", .log = true},
                    .y = {.label = "y"},
                    .at = {1, 10, 100},
                    .curves = {{.label = "a",
                                .predict = [](double x) { return 2 * x; },
                                .simulate = [](const Laboratory&, double x) { return x; }}}};
  const Plot plot = run_sweep(sweep, Laboratory{});
  ASSERT_EQ(plot.curves.size(), 2u);
  EXPECT_EQ(plot.curves[0].mark, PlotMark::kLine);
  EXPECT_GT(plot.curves[0].points.size(), 50u);
  EXPECT_EQ(plot.curves[0].points.back().y, 200);
  EXPECT_EQ(plot.curves[1].mark, PlotMark::kPoints);
  ASSERT_EQ(plot.curves[1].points.size(), 3u);
  EXPECT_EQ(plot.curves[1].points[1].y, 10);
}

}  // namespace
}  // namespace stepsim
