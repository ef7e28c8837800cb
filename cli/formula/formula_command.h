// stepsim formula: lists, explains, evaluates and solves the closed forms of books/formulas.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kFormulaSubcommand;

}  // namespace stepsim
