// The figures that the source documents work out, through the formula table: what the formula gives
// is the right value of tests/reference/formulas/cases.csv within the case's own tolerance.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/formulas/formula_table.h"
#include "tests/reference_folder.h"

namespace stepsim {
namespace {

const std::string kFolder = (reference_folder() / "formulas/").string();

struct Case {
  double expected = 0;
  std::string unit;
  double tolerance = 0;
};

// A line of comma-separated values; quotes may hold commas, "" is a quote.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

// Columns: id, group, source, inputs, formula, quantity, expected, unit, rel_tol, ...
std::map<std::string, Case> read_cases() {
  std::map<std::string, Case> cases;
  std::ifstream file(kFolder + "cases.csv");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    cases[cells.at(0)] = {std::stod(cells.at(6)), cells.at(7), std::stod(cells.at(8))};
  }
  return cases;
}

// What a unit of the cases is in base units: 1 but for those below.
double base_units(const std::string& unit) {
  static const std::map<std::string, double> kUnits = {
      {"ms", 1e-3}, {"days", 86400}, {"GPU-days", 86400}, {"years", 86400.0 * 365}, {"GB", 1e9}};
  const auto found = kUnits.find(unit);
  return found == kUnits.end() ? 1 : found->second;
}

double value_of(const Formula& formula, std::istringstream& words) {
  FormulaValues values;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string symbol = word.substr(0, equals);
    bool is_known = false;
    for (const FormulaInput& input : formula.inputs) {
      if (input.symbol != symbol) continue;
      const auto value = read_formula_value(word.substr(equals + 1), input.unit);
      EXPECT_TRUE(value) << word;
      values[symbol] = value.value_or(0);
      is_known = true;
    }
    EXPECT_TRUE(is_known) << word;
  }
  return evaluate(formula, values).value;
}

TEST(FormulaCasesTest, EveryWorkedCaseOfTheSourcesComesOutRight) {
  const std::map<std::string, Case> cases = read_cases();
  ASSERT_EQ(cases.size(), 284u);
  std::map<std::string, int> evaluated;
  std::ifstream file(kFolder + "formula_of_case.txt");
  for (std::string line; std::getline(file, line);) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string id;
    std::string formula_id;
    words >> id >> formula_id;
    ASSERT_TRUE(cases.contains(id));
    const Formula* const formula = find_formula(formula_id);
    ASSERT_NE(formula, nullptr);
    const Case& expected = cases.at(id);
    const double right = expected.expected * base_units(expected.unit);
    // Tolerance 0 is an exact count.
    const double value = value_of(*formula, words);
    EXPECT_NEAR(value, right, std::abs(right) * (expected.tolerance + 1e-12));
    ++evaluated[id];
  }
  EXPECT_EQ(evaluated.size(), cases.size());
}

// The tolerances above are those of what the sources print. The right values are exact: a factor
// such as (n-1)/n must not hide in 2 %.
TEST(FormulaCasesTest, TheFormulasAreExactBeyondTheTolerancesOfTheSources) {
  const std::map<std::string, Case> cases = read_cases();
  std::ifstream file(kFolder + "formula_of_case.txt");
  for (std::string line; std::getline(file, line);) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string id;
    std::string formula_id;
    words >> id >> formula_id;
    const double right = cases.at(id).expected * base_units(cases.at(id).unit);
    // The case divides by a threshold that is rounded to four digits: 2e6 / 108.4.
    const double tolerance = id == "E15" ? 3e-4 : 1e-6;
    const double value = value_of(*find_formula(formula_id), words);
    EXPECT_NEAR(value, right, std::abs(right) * tolerance);
  }
}

}  // namespace
}  // namespace stepsim
