// The table of formulas: find a formula, evaluate it, solve it for one input.
//
//   const Formula* formula = find_formula("E8");
//   evaluate(*formula, {{"C", 459e12}, {"W", 180e9}, {"MX", 2}, {"F", 32768}}).value   // 99.2
//   solve(*formula, {{"C", 459e12}, ..., {"B_over_N", 99.2}}, "F")                      // {32768}
//
// Wrong values throw a ConfigError with all problems. A value outside a formula's conditions is not
// an error: the result is computed, and the condition is returned as a warning.
//
// Solving scans the range of the input: 100 points in each power of ten, and every count up to
// 4,096. It bisects at each change of sign, and takes a maximum or minimum that touches the result.
// So it finds several solutions of a formula that is not monotone; of two solutions within one
// scanning step it misses both. A jump over the result (ceil, floor) is no solution.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "books/formulas/expression.h"
#include "books/formulas/formula.h"
#include "sim/base/error.h"

namespace stepsim {

const std::vector<Formula>& formulas();  // in order of group and row
std::string_view name_of_group(char group);

const Formula* find_formula(std::string_view id);  // nullptr if there is none

// A row of the sources that is not a formula but a measurement, a rule or a remark. Sorted by id.
struct NoFormula {
  std::string_view id;
  std::string_view what;
};
std::span<const NoFormula> no_formulas();

// Reads "64GB", "1.5ms", "989TFLOPS", "4096" or "0.5" into the base unit. Returns nullopt if the
// text is not a finite number from 0 on, with a unit that fits `unit`.
std::optional<double> read_formula_value(std::string_view text, std::string_view unit);

// Returns "1.34 GB" or "13.6931 ways": six significant digits, whole numbers in full.
std::string formula_value_text(double value, std::string_view unit);

// Returns a problem for each input that is unknown, missing or out of range.
std::vector<Problem> check_values(const Formula& formula, const FormulaValues& values);

struct Evaluation {
  double value = 0;
  std::vector<std::string> warnings{};  // conditions that do not hold
};

// Throws ConfigError with the problems of check_values(), or if the result is not finite.
Evaluation evaluate(const Formula& formula, const FormulaValues& values);

// Returns the values of input `unknown` that give the result, in increasing order. `values` has all
// other inputs, and the result under its symbol. Throws ConfigError if the values are wrong or no
// value gives the result.
std::vector<double> solve(const Formula& formula, const FormulaValues& values,
                          std::string_view unknown);

// Returns the values of the formula's own example, "C=989.5TFLOPS W=3.35TB/s". REQUIRES: the
// example can be read.
FormulaValues example_values(const Formula& formula);

}  // namespace stepsim
