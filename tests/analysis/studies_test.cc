// Every study of the table is a test: each of its rows differs from its formula as derived.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "books/formulas/formula_table.h"
#include "books/laboratory/run_study.h"
#include "books/laboratory/study_table.h"

namespace stepsim {
namespace {

class StudyTest : public testing::TestWithParam<std::size_t> {};

TEST_P(StudyTest, DiffersFromItsFormulasAsDerived) {
  const Study study = studies()[GetParam()];
  for (const StudyRow& row : study.rows()) {
    const RowOutcome outcome = run_row(study, row, Laboratory{});
    ASSERT_TRUE(outcome.simulated) << outcome.id << ": " << outcome.skipped;
    EXPECT_TRUE(outcome.as_expected)
        << outcome.id << ": predicted " << row.predicted << ", simulated " << *outcome.simulated
        << ", difference " << outcome.difference << ", expected " << row.expected.low << " to "
        << row.expected.high;
  }
}

INSTANTIATE_TEST_SUITE_P(All, StudyTest, testing::Range<std::size_t>(0, studies().size()),
                         [](const testing::TestParamInfo<std::size_t>& tested) {
                           return std::string(studies()[tested.param].id);
                         });

TEST(StudiesTest, EveryRowIsCompleteAndNamesAFormula) {
  std::set<std::string> ids;
  for (const Study& study : studies()) {
    EXPECT_FALSE(study.title.empty());
    EXPECT_FALSE(study.claim.empty());
    for (const StudyRow& row : study.rows()) {
      const std::string id = row_id(study, row);
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
TEST(StudiesTest, NoRangeIsSoWideThatAnythingIsExpected) {
  for (const Study& study : studies()) {
    for (const StudyRow& row : study.rows()) {
      const double width = (1 + row.expected.high) / (1 + row.expected.low);
      EXPECT_LE(width, 1.5) << row_id(study, row);
    }
  }
}

TEST(RunStudyTest, JudgesARowByItsRange) {
  const Study study{.id = "S0", .title = "t", .claim = "c", .rows = nullptr, .sweeps = nullptr};
  StudyRow row{.id = "half",
               .formula = "B1",
               .regime = "r",
               .predicted = 2,
               .expected = {-0.5, -0.5},
               .tolerance = 0.5,
               .why = "w",
               .simulate = [](const Laboratory&) { return 1.0; }};
  const RowOutcome inside = run_row(study, row, Laboratory{});
  EXPECT_EQ(inside.id, "S0.half");
  EXPECT_EQ(inside.difference, -0.5);
  EXPECT_TRUE(inside.as_expected);
  EXPECT_TRUE(inside.holds);
  row.expected = {-0.4, 0.1};
  row.tolerance = 0.4;
  const RowOutcome outside = run_row(study, row, Laboratory{});
  EXPECT_FALSE(outside.as_expected);
  EXPECT_FALSE(outside.holds);
}

TEST(RunStudyTest, ANetworkModelMayHaveItsOwnRange) {
  const Study study{.id = "S0", .title = "t", .claim = "c", .rows = nullptr, .sweeps = nullptr};
  const StudyRow row{.id = "r",
                     .formula = "B1",
                     .regime = "r",
                     .predicted = 1,
                     .expected = {0.9, 1.1},
                     .why = "w",
                     .simulate =
                         [](const Laboratory& laboratory) {
                           return laboratory.fidelity == Fidelity::kLatencyBandwidth ? 1.0 : 2.0;
                         },
                     .expected_unshared = DifferenceRange{0, 0}};
  EXPECT_TRUE(run_row(study, row, {.fidelity = Fidelity::kFlow}).as_expected);
  EXPECT_TRUE(run_row(study, row, {.fidelity = Fidelity::kLatencyBandwidth}).as_expected);
  EXPECT_TRUE(run_row(study, row, {.fidelity = Fidelity::kPacket}).as_expected);
}

TEST(RunStudyTest, WhatANetworkModelCannotRunIsSkippedWithTheReason) {
  const Study study{.id = "S0", .title = "t", .claim = "c", .rows = nullptr, .sweeps = nullptr};
  const StudyRow row{
      .id = "r",
      .formula = "B1",
      .regime = "r",
      .predicted = 1,
      .expected = {0, 0},
      .why = "w",
      .simulate = [](const Laboratory&) -> double { throw StudySkipped("too large"); }};
  const RowOutcome outcome = run_row(study, row, Laboratory{});
  EXPECT_FALSE(outcome.simulated);
  EXPECT_EQ(outcome.skipped, "too large");
}

TEST(RunStudyTest, ASweepIsALineThroughAllOfTheAxisAndAPointForEachRun) {
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
