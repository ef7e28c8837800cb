#include "calibration/errors.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

// log(m) for 0.7 < m < 1.5: 2 artanh((m - 1) / (m + 1)), of which the series ends below 2^-53.
double log_near_one(double m) {
  constexpr int kTerms = 12;
  const double t = (m - 1) / (m + 1);
  double power = t;
  double sum = 0;
  for (int k = 0; k < kTerms; ++k) {
    sum += power / (2 * k + 1);
    power *= t * t;
  }
  return 2 * sum;
}

}  // namespace

double log_error(double predicted, double measured) {
  constexpr double kLog2 = 0.69314718055994530942;
  constexpr double kRootOfHalf = 0.70710678118654752440;
  int exponent = 0;
  double mantissa = std::frexp(predicted / measured, &exponent);
  if (mantissa < kRootOfHalf) {
    mantissa *= 2;
    --exponent;
  }
  return std::abs(exponent * kLog2 + log_near_one(mantissa));
}

ErrorSummary summary_of(std::vector<double> relative_errors) {
  if (relative_errors.empty()) return {};
  for (double& error : relative_errors) error = std::abs(error);
  std::ranges::sort(relative_errors);
  const std::size_t rows = relative_errors.size();
  const double median = rows % 2 == 1
                            ? relative_errors[rows / 2]
                            : (relative_errors[rows / 2 - 1] + relative_errors[rows / 2]) / 2;
  return {.rows = rows, .median = median, .p90 = relative_errors[(rows * 9 + 9) / 10 - 1]};
}

}  // namespace stepsim
