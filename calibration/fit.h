// fit() finds the values of constants with which predictions are nearest to measurements.
//
//   FitProblem problem{.constants = ..., .points = ..., .seconds = ...};
//   hold_out_a_fifth(problem.points);
//   const FitResult result = fit(problem);
//   result.values[i], result.why_kept[i]
//
// It minimises the mean of f(|log(predicted / measured)|) over the points that are not held out,
// where f(e) = e + e^2 / (0.2 + 2 e): an absolute error, so that rows which nothing explains pull
// little, with some weight on large ones. The search is NLopt's SBPLX (Rowan's subplex), without
// derivatives and without chance. It begins at the present values and at problem.starts, and again
// at what was best. Then all values have three significant digits, and no step of the last digit of
// one makes it better. The same input has the same result on any machine and with any number of
// threads.
//
// Constants that the points do not determine (determined.h) stay as they were, also if they turn
// out so at the end. If nothing is better than the present values, they stay.

#pragma once

#include <string>
#include <vector>

#include "calibration/fit_problem.h"

namespace stepsim {

struct FitResult {
  std::vector<double> values;         // of all constants
  std::vector<std::string> why_kept;  // for each constant; "": it was fitted
};

// Returns the present values if there are no points. Throws std::runtime_error if NLopt fails.
FitResult fit(const FitProblem& problem);

// Returns the mean that fit() minimises. REQUIRES: there is a point that is not held out.
double mean_error(const FitProblem& problem, const std::vector<double>& values);

}  // namespace stepsim
