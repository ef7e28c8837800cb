// The request in the words of `stepsim formula ID SYMBOL=VALUE...`, and its answer.
//
//   answer(formula, words, {})   // words: "B=48000", "W=180GB/s", "F=?", "chip=v5p", "model=..."

#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/formulas/formula_table.h"
#include "sim/base/error.h"

namespace stepsim {

// The values in the words behind the formula's id.
struct FormulaInputs {
  FormulaValues values;  // also those from a chip and a model, and the result if it is given
  std::string unknown;   // SYMBOL=?; empty: none
};

struct Answer {
  FormulaInputs inputs;
  Evaluation evaluation;          // of the first solution, where one was asked for
  std::vector<double> solutions;  // of `inputs.unknown`
};

// Throws ConfigError if there is none: with the nearest id, or with what the row is instead.
const Formula& read_formula(const std::string& id);

// chip= and model= fill the inputs that the words don't give. Throws ConfigError with `problems`
// and all problems of the words.
Answer answer(const Formula& formula, std::span<const std::string> words,
              std::vector<Problem> problems);

}  // namespace stepsim
