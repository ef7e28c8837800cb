// Answers a request in the words of `stepsim formula ID SYMBOL=VALUE...`.
//
//   answer(formula, words, {})   // words: "B=48000", "W=180GB/s", "F=?", "chip=v5p", "model=..."

#pragma once

#include <span>
#include <string>
#include <vector>

#include "books/formulas/formula_table.h"
#include "sim/base/error.h"

namespace stepsim {

// FormulaInputs are the values given by the words after the formula's id.
struct FormulaInputs {
  FormulaValues values;  // includes those from chip= and model=, and the result if it is given
  std::string unknown;   // SYMBOL=?; empty: none
};

struct Answer {
  FormulaInputs inputs;
  Evaluation evaluation;          // for the first solution, if the words ask for one
  std::vector<double> solutions;  // values of `inputs.unknown`
};

// Throws ConfigError if there is none. The message gives the nearest id, or explains a row that is
// not a formula.
const Formula& read_formula(const std::string& id);

// chip= and model= fill the inputs that the words don't give. Throws ConfigError with `problems`
// and all problems of the words.
Answer answer(const Formula& formula, std::span<const std::string> words,
              std::vector<Problem> problems);

}  // namespace stepsim
