// Every experiment there is: start here.

#pragma once

#include <vector>

#include "analysis/studies/study.h"

namespace stepsim {

std::vector<FormulaExperiment> formula_experiments();  // in order of their numbers

}  // namespace stepsim
