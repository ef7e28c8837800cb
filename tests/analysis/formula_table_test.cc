#include "books/formulas/formula_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

namespace stepsim {
namespace {

const Formula& formula_named(std::string_view id) {
  const Formula* const formula = find_formula(id);
  EXPECT_NE(formula, nullptr) << id;
  return *formula;
}

std::vector<Problem> problems_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.problems();
  }
  return {};
}

TEST(ExpressionTest, PowersBindTighterThanSignsAndSignsTighterThanProducts) {
  EXPECT_EQ(Expression("-2^2").value({}), -4);
  EXPECT_EQ(Expression("2^3^2").value({}), 512);
  EXPECT_EQ(Expression("2 * -3 + 1").value({}), -5);
  EXPECT_EQ(Expression("8 / 4 / 2 - 1 - 1").value({}), -1);
  EXPECT_EQ(Expression("max(1, min(5, 3), 2)").value({}), 3);
  EXPECT_EQ(Expression("2 * x <= 4").value({{"x", 2}}), 1);
  EXPECT_EQ(Expression("2 * x < 4").value({{"x", 2}}), 0);
}

TEST(ExpressionTest, CeilAndFloorForgiveRounding) {
  // 0.1 * 3 is 0.30000000000000004.
  EXPECT_EQ(Expression("ceil(0.1 * 3 * 10)").value({}), 3);
  EXPECT_EQ(Expression("ceil(3.001)").value({}), 4);
  EXPECT_EQ(Expression("floor((1 - 0.9) * 10)").value({}), 1);
}

TEST(ExpressionTest, WhatIsNoExpressionIsAMistakeOfTheProgram) {
  for (const char* text : {"", "1 +", "(1", "1 2", "f(1)", "sqrt(1, 2)", "a $ b"}) {
    EXPECT_THROW(Expression{text}, std::logic_error) << text;
  }
}

TEST(FormulaTableTest, IdsAreUniqueAndInOrderOfGroup) {
  std::set<std::string_view> ids;
  char group = 'A';
  for (const Formula& formula : formulas()) {
    EXPECT_TRUE(ids.insert(formula.id).second) << formula.id;
    EXPECT_GE(formula.group(), group) << formula.id;
    group = formula.group();
    EXPECT_FALSE(name_of_group(group).empty()) << formula.id;
  }
  EXPECT_EQ(group, 'K');
}

// The sources' catalogue numbers its rows without gaps. Each row is a formula, or says what else it
// is.
TEST(FormulaTableTest, EveryRowOfTheCatalogueIsAFormulaOrSaysWhatElse) {
  const std::map<char, int> last = {{'A', 17}, {'B', 19}, {'C', 25}, {'D', 17}, {'E', 23},
                                    {'F', 9},  {'G', 9},  {'H', 7},  {'I', 16}};
  for (const auto& [group, rows] : last) {
    for (int row = 1; row <= rows; ++row) {
      const std::string id = group + std::to_string(row);
      const auto is_it = [&](std::string_view other) {
        return other == id || other.starts_with(id + ".");
      };
      const bool is_formula = std::ranges::any_of(formulas(), is_it, &Formula::id);
      const bool is_other = std::ranges::any_of(no_formulas(), is_it, &NoFormula::id);
      EXPECT_NE(is_formula, is_other) << id;
    }
  }
}

TEST(FormulaTableTest, EveryRowIsComplete) {
  for (const Formula& formula : formulas()) {
    SCOPED_TRACE(formula.id);
    EXPECT_FALSE(formula.title.empty());
    EXPECT_FALSE(formula.source.empty());
    EXPECT_FALSE(formula.example.empty());
    std::set<std::string> symbols;
    for (const FormulaInput& input : formula.inputs) {
      EXPECT_FALSE(input.meaning.empty()) << input.symbol;
      EXPECT_TRUE(symbols.insert(std::string(input.symbol)).second) << input.symbol;
    }
    EXPECT_FALSE(symbols.contains(std::string(formula.result.symbol)));
    // The inputs are exactly the symbols of the expression.
    const std::vector<std::string> used = Expression(formula.expression).symbols();
    EXPECT_EQ(std::set<std::string>(used.begin(), used.end()), symbols);
    symbols.insert(std::string(formula.result.symbol));
    for (const Condition& condition : formula.conditions) {
      if (condition.check.empty()) continue;
      const Expression check(condition.check);
      for (const std::string& symbol : check.symbols()) {
        EXPECT_TRUE(symbols.contains(symbol)) << condition.check;
      }
    }
  }
}

TEST(FormulaTableTest, EveryExampleEvaluatesWithoutWarnings) {
  for (const Formula& formula : formulas()) {
    SCOPED_TRACE(formula.id);
    const Evaluation evaluation = evaluate(formula, example_values(formula));
    EXPECT_TRUE(std::isfinite(evaluation.value));
    EXPECT_GE(evaluation.value, 0);
    EXPECT_TRUE(evaluation.warnings.empty());
  }
}

// For each input of each formula: solving the example's result gives an input with the same result.
// Where the formula is neither flat nor stepped, it gives the input itself.
TEST(FormulaTableTest, SolvingInvertsEvaluating) {
  for (const Formula& formula : formulas()) {
    const FormulaValues values = example_values(formula);
    const double result = evaluate(formula, values).value;
    const bool is_stepped = formula.expression.find("ceil") != std::string_view::npos ||
                            formula.expression.find("floor") != std::string_view::npos;
    for (const auto& [symbol, value] : values) {
      SCOPED_TRACE(std::string(formula.id) + " for " + symbol);
      FormulaValues others = values;
      others.erase(symbol);
      others[std::string(formula.result.symbol)] = result;
      std::vector<double> solutions;
      if (!problems_of([&, name = symbol] { solutions = solve(formula, others, name); }).empty()) {
        ADD_FAILURE() << "no solution";
        continue;
      }
      others.erase(std::string(formula.result.symbol));
      const Expression expression(formula.expression);
      bool is_found = false;
      for (const double solution : solutions) {
        FormulaValues back = others;
        for (const FormulaInput& input : formula.inputs) {
          if (input.otherwise) back.try_emplace(std::string(input.symbol), *input.otherwise);
        }
        back[symbol] = solution;
        EXPECT_NEAR(expression.value(back), result, 1e-8 * std::abs(result));
        is_found = is_found || std::abs(solution - value) <= 1e-6 * std::abs(value);
        for (const double nudged : {value * 0.99, value * 1.01}) {
          back[symbol] = nudged;
          is_found =
              is_found || std::abs(expression.value(back) - result) <= 1e-12 * result;  // flat
        }
      }
      EXPECT_TRUE(is_found || is_stepped);
    }
  }
}

TEST(FormulaTableTest, SolvesForOneInputOfAThreshold) {
  // Y = F W / C: F = 11 x 459e12 / 180e9 = 28,050.
  const FormulaValues values = {{"Y_max", 11}, {"C", 459e12}, {"W", 180e9}};
  EXPECT_EQ(solve(formula_named("E4"), values, "F"), std::vector<double>{28050});
}

TEST(FormulaTableTest, FindsEverySolution) {
  // w / (tile ceil(w / tile)) is a saw: with a tile of 128, 3/4 is 96 in one tile and 192 in two.
  const auto widths = solve(formula_named("A16"), {{"share", 0.75}, {"tile", 128}}, "w");
  ASSERT_GE(widths.size(), 2u);
  EXPECT_EQ(widths[0], 96);
  EXPECT_EQ(widths[1], 192);
}

TEST(FormulaTableTest, FindsASolutionBesideAPole) {
  // W d / (d - 1) = 5 W at d = 5/4; at d = 1 it is infinite.
  const auto solutions =
      solve(formula_named("C9.bandwidth"), {{"bandwidth", 5e9}, {"W", 1e9}}, "d");
  ASSERT_EQ(solutions.size(), 1u);
  EXPECT_NEAR(solutions[0], 1.25, 1e-9);
}

TEST(FormulaTableTest, FindsWhereTheResultIsOnlyTouched) {
  // (M - 1) / M^2 is largest, 1/4, at M = 2.
  const auto solutions = solve(formula_named("C11"), {{"V", 1e9}, {"Wn", 1e9}, {"T", 0.25}}, "M");
  EXPECT_EQ(solutions, std::vector<double>{2});
}

TEST(FormulaTableTest, AResultThatNoInputGivesIsAProblem) {
  // The bubble is below 1 whatever m is.
  const auto problems = problems_of([] {
    solve(formula_named("G1.fraction"), {{"P", 8}, {"bubble", 1.5}}, "m");
  });
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].field, "m");
  EXPECT_NE(problems[0].message.find("no value"), std::string::npos);
}

TEST(FormulaTableTest, AStepOverTheResultIsNoSolution) {
  // B9: ceil((n - 1) / 2) is whole.
  EXPECT_EQ(problems_of([] { solve(formula_named("B9"), {{"hops", 2.5}}, "n"); }).size(), 1u);
}

TEST(FormulaTableTest, ReportsEveryWrongInputAtOnce) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto problems = problems_of([&] {
    evaluate(formula_named("E7"), {{"B", nan}, {"N", 2.5}, {"Q", 1}});
  });
  ASSERT_EQ(problems.size(), 4u);
  EXPECT_EQ(problems[0], (Problem{"Q", "is no input of E7"}));
  EXPECT_EQ(problems[1], (Problem{"B", "must be above 0, is nan"}));
  EXPECT_EQ(problems[2], (Problem{"N", "must be a whole number from 1 on, is 2.5"}));
  EXPECT_EQ(problems[3], (Problem{"F", "must be given: MLP width"}));
}

TEST(FormulaTableTest, RangesHoldAtTheirLimits) {
  const Formula& formula = formula_named("D15.work");
  const auto with_mfu = [&](double mfu) {
    return problems_of([&] { evaluate(formula, {{"work", 1}, {"C", 1}, {"MFU", mfu}}); }).size();
  };
  EXPECT_EQ(with_mfu(1), 0u);
  EXPECT_EQ(with_mfu(1.0001), 1u);
  EXPECT_EQ(with_mfu(0), 1u);
}

TEST(FormulaTableTest, NoFiniteResultIsAProblem) {
  // W d / (d - 1) of one child.
  EXPECT_EQ(problems_of([] {
              evaluate(formula_named("C9.bandwidth"), {{"d", 1}, {"W", 1}});
            }).size(),
            1u);
}

TEST(FormulaTableTest, OutsideItsConditionsAFormulaIsComputedWithAWarning) {
  // 18,823 chips are more than a v5p pod.
  const FormulaValues values = {{"B", 16e6}, {"M", 3}, {"W", 180e9}, {"C", 459e12}};
  const Evaluation evaluation = evaluate(formula_named("E3"), values);
  EXPECT_NEAR(evaluation.value, 18823.5, 0.1);
  ASSERT_EQ(evaluation.warnings.size(), 1u);
  EXPECT_NE(evaluation.warnings[0].find("8960"), std::string::npos);
}

TEST(FormulaTableTest, InputsThatMayBeLeftOutHaveTheirValue) {
  const FormulaValues values = {{"C", 459e12}, {"W", 180e9}};
  EXPECT_DOUBLE_EQ(evaluate(formula_named("E1"), values).value, 2550);
}

TEST(FormulaTableTest, ReadsQuantitiesWithUnits) {
  EXPECT_EQ(read_formula_value("32MiB", "B"), 33554432);
  EXPECT_EQ(read_formula_value("1.5GB", "B"), 1.5e9);
  EXPECT_EQ(read_formula_value("0.5", "B"), 0.5);
  EXPECT_EQ(read_formula_value("989.5TFLOPS", "FLOP/s"), 989.5e12);
  EXPECT_EQ(read_formula_value("400Gbps", "B/s"), 50e9);
  EXPECT_EQ(read_formula_value("2.79e6h", "s"), 2.79e6 * 3600);
  EXPECT_EQ(read_formula_value("1PFLOP", "FLOP"), 1e15);
  EXPECT_EQ(read_formula_value("48000", "tokens"), 48000);
  EXPECT_EQ(read_formula_value("48000 tokens", "tokens"), 48000);
}

TEST(FormulaTableTest, RefusesWhatIsNoQuantityOfTheUnit) {
  for (const char* text : {"", "abc", "-1", "nan", "inf", "1e999", "5us", "5 B"}) {
    EXPECT_FALSE(read_formula_value(text, "B/s")) << text;
  }
  EXPECT_FALSE(read_formula_value("5GB", "s"));
  EXPECT_FALSE(read_formula_value("5GB", ""));
}

TEST(FormulaTableTest, WritesQuantitiesWithPrefixes) {
  EXPECT_EQ(formula_value_text(0.010162601626, "s"), "10.1626 ms");
  EXPECT_EQ(formula_value_text(86400 * 44.3247, "s"), "44.3247 days");
  EXPECT_EQ(formula_value_text(5.5, "B"), "5.5 B");
  EXPECT_EQ(formula_value_text(293.125e9, "B"), "293.125 GB");
  EXPECT_EQ(formula_value_text(13.6931, "ways"), "13.6931 ways");
  EXPECT_EQ(formula_value_text(2.5, ""), "2.5");
  EXPECT_EQ(formula_value_text(70552387584, "parameters"), "70552387584 parameters");
}

// ---- laws between rows: they tie rows that no worked case reaches to rows that one reaches ----

double value_of(std::string_view id, const FormulaValues& values) {
  return evaluate(formula_named(id), values).value;
}

TEST(FormulaLawTest, AtTheThresholdArithmeticTakesAsLongAsCommunication) {
  // alpha = 2550; data parallelism over 3 axes: 850 tokens on each of 16 chips.
  const double batch = 850.0 * 16;
  const FormulaValues math = {{"B", batch}, {"D", 8192}, {"F", 28672}, {"X", 16}, {"C", 459e12}};
  const FormulaValues comms = {{"D", 8192}, {"F", 28672}, {"W", 180e9}, {"M", 3}};
  EXPECT_DOUBLE_EQ(value_of("E1.math", math), value_of("E1.comms", comms));
  EXPECT_DOUBLE_EQ(value_of("E2.math", math), value_of("E2.comms", comms));
  // Tensor parallelism over 8: F = 8 x 2550.
  EXPECT_DOUBLE_EQ(
      value_of("E4.math", {{"B", 64}, {"D", 8192}, {"F", 20400}, {"Y", 8}, {"C", 459e12}}),
      value_of("E4.comms", {{"B", 64}, {"D", 8192}, {"W", 180e9}}));
}

TEST(FormulaLawTest, AtTheBestMixAllThreeTimesAreEqualAtTheThreshold) {
  // alpha = 4096, F = 32768, N = 64: B = N alpha^2 / F = 32768, X = sqrt(B N / F) = 8, Y = 8.
  const FormulaValues chip = {{"C", 4096e9}, {"W", 1e9}, {"F", 32768}};
  FormulaValues whole = chip;
  whole["N"] = 64;
  EXPECT_DOUBLE_EQ(value_of("E8.batch", whole), 32768);
  EXPECT_DOUBLE_EQ(value_of("E7", {{"B", 32768}, {"N", 64}, {"F", 32768}}), 8);
  const double gathers = value_of("E7.fsdp", {{"D", 64}, {"F", 32768}, {"Y", 8}, {"W", 1e9}});
  const double activations = value_of("E7.tp", {{"B", 32768}, {"D", 64}, {"X", 8}, {"W", 1e9}});
  const double arithmetic =
      value_of("E7.math", {{"B", 32768}, {"D", 64}, {"F", 32768}, {"N", 64}, {"C", 4096e9}});
  EXPECT_DOUBLE_EQ(gathers, activations);
  EXPECT_DOUBLE_EQ(gathers, arithmetic);
  // E10's bytes over the bandwidth are the two communications together.
  const double bytes = value_of("E10", {{"B", 32768}, {"D", 64}, {"X", 8}, {"F", 32768}, {"Y", 8}});
  EXPECT_DOUBLE_EQ(bytes / 1e9, gathers + activations);
}

TEST(FormulaLawTest, AtTheCrossoverLoadingTakesAsLongAsComputing) {
  const FormulaValues matrix = {{"K", 4096}, {"N", 16384}, {"C", 394e12}, {"W", 810e9}};
  FormulaValues step = matrix;
  const double batch = value_of("A11.crossover", matrix);
  step["B"] = batch;
  EXPECT_NEAR(value_of("A11", step), 2 * batch * 4096 * 16384 / 394e12, 1e-15);
}

TEST(FormulaLawTest, ABidirectionalRingIsTwiceAsFastAsOneOfOneDirection) {
  const FormulaValues both = {{"V", 1e9}, {"n", 8}, {"W", 90e9}};
  const FormulaValues one = {{"V", 1e9}, {"n", 8}, {"W", 45e9}};
  EXPECT_DOUBLE_EQ(2 * value_of("B1.exact", both), value_of("B2", one));
  // Whole shards over an even ring: n / 2 hops of V / n.
  EXPECT_DOUBLE_EQ(value_of("B1.hops", one), value_of("B1", {{"V", 1e9}, {"W", 90e9}}));
}

TEST(FormulaLawTest, PipelinesAreIdealTimeAndBubble) {
  const FormulaValues stage = {{"P", 8}, {"tf", 1}, {"tb", 2}};
  FormulaValues run = stage;
  run["m"] = 32;
  EXPECT_DOUBLE_EQ(value_of("G1", run), 32 * 3 + value_of("G6", stage));
  run["t"] = 0.5;
  // A message each way between 7 pairs of neighbours.
  EXPECT_DOUBLE_EQ(value_of("G8", run), 32 * 3 + value_of("G6", stage) + 2 * 7 * 0.5);
}

TEST(FormulaLawTest, OneWayOfTensorParallelismShardsNothing) {
  const FormulaValues layer = {{"s", 4096}, {"h", 8192}, {"N", 64}};
  FormulaValues sharded = layer;
  sharded["t"] = 1;
  EXPECT_DOUBLE_EQ(value_of("H2", sharded), value_of("H1", layer));
  EXPECT_DOUBLE_EQ(value_of("H2.sequence", sharded), value_of("H1", layer));
}

TEST(FormulaLawTest, HierarchicalGathersAreTheirSlowestLevel) {
  const FormulaValues levels = {{"V", 1e9}, {"W1", 450e9}, {"W2", 400e9}, {"W3", 12.8e12}};
  EXPECT_DOUBLE_EQ(value_of("C9", levels), 1e9 * value_of("C9.term", {{"d", 32}, {"W", 400e9}}));
  const FormulaValues nodes = {{"V", 1e9}, {"d", 8}, {"W", 450e9}, {"M", 2}, {"Wn", 400e9}};
  EXPECT_DOUBLE_EQ(value_of("C20", nodes), value_of("C5", {{"V", 1e9}, {"d", 8}, {"W", 450e9}}));
}

}  // namespace
}  // namespace stepsim
