// The figures that the source documents work out, through the formula table. The formula must give
// the right value within the case's own tolerance.

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "books/formulas/worked_cases.h"
#include "proto/catalog/catalog.h"

namespace stepsim {
namespace {

std::vector<WorkedCase> worked_cases() {
  const WorkedCaseTexts texts = worked_case_texts();
  return read_worked_cases(texts.cases, texts.formulas);
}

TEST(FormulaCasesTest, EveryWorkedCaseOfTheSourcesComesOutRight) {
  const std::vector<WorkedCase> cases = worked_cases();
  EXPECT_EQ(cases.size(), 284u);
  for (const WorkedCase& worked : cases) {
    const CaseOutcome outcome = evaluate_case(worked);
    EXPECT_TRUE(outcome.agrees) << worked.id << ": " << worked.formula << " " << worked.inputs
                                << " is " << outcome.value << ", not " << worked.expected;
  }
}

// The tolerances are the precision of the printed values. The right values are exact: a factor such
// as (n-1)/n must not hide within 2 %.
TEST(FormulaCasesTest, TheFormulasAreExactBeyondTheTolerancesOfTheSources) {
  for (const WorkedCase& worked : worked_cases()) {
    // E15 divides by a threshold that is rounded to four digits: 2e6 / 108.4.
    const double tolerance = worked.id == "E15" ? 3e-4 : 1e-6;
    EXPECT_LE(std::abs(evaluate_case(worked).difference), tolerance) << worked.id;
  }
}

constexpr std::string_view kHead =
    "id,group,source,inputs,formula,quantity,expected,unit,rel_tol,printed,verdict,note\n";

TEST(WorkedCasesTest, QuotesMayHoldCommasAndQuotes) {
  const std::vector<WorkedCase> cases = read_worked_cases(
      std::string(kHead) + "X1,X,\"a, b\",,,\"the \"\"q\"\"\",2,ms,0.01,3,WRONG,n\n",
      "X1 A1 flops=2e12 C=1PFLOPS\n");
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].source, "a, b");
  EXPECT_EQ(cases[0].quantity, "the \"q\"");
  EXPECT_EQ(cases[0].inputs, "flops=2e12 C=1PFLOPS");
  EXPECT_EQ(cases[0].tolerance, 0.01);
}

TEST(WorkedCasesTest, ACaseWithoutAFormulaIsAMistakeOfTheProgram) {
  const std::string csv = std::string(kHead) + "X1,X,s,,,q,2,s,0,2,ok,\n";
  EXPECT_THROW(read_worked_cases(csv, ""), std::logic_error);
  EXPECT_THROW(read_worked_cases(csv, "X1 A1 a=1\nX2 A1 a=1\n"), std::logic_error);
  EXPECT_THROW(read_worked_cases("id,other\n", ""), std::logic_error);
}

TEST(WorkedCasesTest, ValuesAreInTheCasesOwnUnit) {
  EXPECT_EQ(base_units("ms"), 1e-3);
  EXPECT_EQ(base_units("days"), 86400);
  EXPECT_EQ(base_units("tokens"), 1);
}

}  // namespace
}  // namespace stepsim
