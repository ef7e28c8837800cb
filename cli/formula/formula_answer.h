// What the words of `stepsim formula ID SYMBOL=VALUE...` ask for, and the answer.
//
//   answer(formula, words, {})   // words: "B=48000", "W=180GB/s", "F=?", "chip=v5p", "model=..."

#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/formulas/formula_table.h"
#include "sim/base/error.h"

namespace stepsim {

// What the words after the formula's id say.
struct FormulaInputs {
  FormulaValues values;  // those of a chip and a model too; with the result if it is given
  std::string unknown;   // SYMBOL=?; empty: none
};

struct Answer {
  FormulaInputs inputs;
  Evaluation evaluation;          // of the first solution, where one was asked for
  std::vector<double> solutions;  // of `inputs.unknown`
};

// Throws ConfigError with the nearest id, or with what the row is where it is no formula.
const Formula& read_formula(const std::string& id);

// Throws ConfigError with `problems` and all of the words' own. Fills from the catalog what chip=
// and model= know and the words don't give.
Answer answer(const Formula& formula, std::span<const std::string> words,
              std::vector<Problem> problems);

}  // namespace stepsim
