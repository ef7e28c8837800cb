#include "calibration/calibration.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace stepsim {

std::size_t Calibration::fitted() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      constants, [](const CalibratedConstant& one) { return one.why_kept.empty(); }));
}

Calibration calibrate(const std::string& of, const FitProblem& problem, const FitResult& result) {
  Calibration calibration{.of = of, .constants = {}, .errors = {}};
  std::set<std::string_view> shapes;
  for (const FitPoint& point : problem.points) shapes.insert(point.shape);
  calibration.shapes = shapes.size();
  for (std::size_t i = 0; i < problem.constants.size(); ++i) {
    const Constant& constant = problem.constants[i];
    calibration.constants.push_back({.name = constant.name,
                                     .unit = constant.unit,
                                     .before = constant.value,
                                     .was_set = constant.is_set,
                                     .after = result.values[i],
                                     .why_kept = result.why_kept[i]});
    CalibratedConstant& added = calibration.constants.back();
    if (!added.was_set && added.why_kept.empty() && added.after == added.before) {
      added.why_kept = "nothing is better than none";
    }
  }
  calibration.errors.push_back(errors_of("all", problem, result, [](std::size_t) { return true; }));
  for (const bool held_out : {false, true}) {
    calibration.errors.push_back(
        errors_of(held_out ? "held out" : "fitted", problem, result,
                  [&](std::size_t i) { return problem.points[i].held_out == held_out; }));
  }
  return calibration;
}

}  // namespace stepsim
