// Which constants the points of a fit determine. A constant is fitted if measurements that are off
// by 5 % each would leave it known to a third: the times have to depend on it, and in another way
// than on the constants that are fitted beside it.
//
// The columns of relative sensitivities, d log(time) / d log(constant), one for each constant with
// one entry for each shape, are made orthogonal one after another: always the first constant whose
// rest is at least a quarter as long as the longest. One whose rest is too short stays as it was.
// There are at least three shapes for each constant that is fitted.
//
// Cost: O(constants x shapes) predictions.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit_problem.h"

namespace stepsim {

// Returns for each constant why it has to stay as it was; "" if the points determine it. Only
// points that are not held out count. `values`: where the sensitivities are taken. `kept`:
// constants that stay anyway, with their reasons ("": none).
std::vector<std::string> why_undetermined(const FitProblem& problem, std::span<const double> values,
                                          std::vector<std::string> kept);

}  // namespace stepsim
