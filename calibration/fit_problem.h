// FitProblem is what a fit has to solve: numbers that may change, measured times, and what the
// simulator says about each time with given numbers. Whether it is a matmul, a collective or a step
// is nothing to the fit.

#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace stepsim {

struct Constant {
  std::string name;  // as in files: "peak_fraction"
  std::string unit;  // "us", "TB/s"; empty: none
  double value = 0;  // before the fit, in `unit`; if it was unset, where a search begins
  bool is_set = true;
  double least = 0;
  double most = 0;
  double scale = 0;  // what counts as a large value, for constants that are 0; above 0
  // A search ends in the nearest hollow: it begins at each of these. Empty: at `value`.
  std::vector<double> begins_at{};
  std::string needs;  // which rows tell it: "matmuls of few rows"
};

struct FitPoint {
  std::string shape;  // points of one shape are measurements of the same thing
  double seconds = 0;
  double weight = 1;
  bool held_out = false;
};

struct FitProblem {
  std::vector<Constant> constants;
  std::vector<FitPoint> points;
  // Returns the predicted time of a point. A value that equals its constant's leaves it as it was,
  // also if it was unset. May be called from one thread at a time.
  std::function<double(std::span<const double> values, std::size_t point)> seconds;
  // Further places where a search begins, each with one value for each constant. May be empty.
  std::vector<std::vector<double>> starts{};
};

// Holds a fifth of the shapes out, chosen by a hash of the shape: the same in every run and on
// every machine. Fewer than five shapes: none.
void hold_out_a_fifth(std::vector<FitPoint>& points);

// Returns how many different shapes the points have that are not held out.
std::size_t shapes_to_fit(const std::vector<FitPoint>& points);

}  // namespace stepsim
