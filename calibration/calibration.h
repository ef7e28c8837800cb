// Calibration is what came of one fit: constants before and after, and how far predictions are off.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/errors.h"
#include "calibration/fit.h"
#include "calibration/fit_problem.h"

namespace stepsim {

struct CalibratedConstant {
  std::string name;
  std::string unit;
  double before = 0;
  bool was_set = true;  // false: there was none before
  double after = 0;
  std::string why_kept;  // "": it was fitted
};

struct CalibrationErrors {
  std::string of;  // "fitted", "held out", "all_reduce of 8"
  ErrorSummary before;
  ErrorSummary after;
};

struct Calibration {
  std::string of;          // "matmuls of bf16 on h100-sxm"
  std::size_t shapes = 0;  // different ones among the rows
  std::vector<CalibratedConstant> constants;
  std::vector<CalibrationErrors> errors;  // "all", "fitted", "held out", and others

  std::size_t fitted() const;  // constants
  const CalibrationErrors& of_all() const { return errors.front(); }
};

// Sums up what a fit has found.
Calibration calibrate(const std::string& of, const FitProblem& problem, const FitResult& result);

// Returns the errors of the points for which `is_in` holds.
template <typename IsIn>
CalibrationErrors errors_of(const std::string& of, const FitProblem& problem,
                            const FitResult& result, const IsIn& is_in) {
  std::vector<double> present;
  for (const Constant& constant : problem.constants) present.push_back(constant.value);
  std::vector<double> before;
  std::vector<double> after;
  for (std::size_t i = 0; i < problem.points.size(); ++i) {
    if (!is_in(i)) continue;
    const double measured = problem.points[i].seconds;
    before.push_back(problem.seconds(present, i) / measured - 1);
    after.push_back(problem.seconds(result.values, i) / measured - 1);
  }
  return {.of = of, .before = summary_of(before), .after = summary_of(after)};
}

}  // namespace stepsim
