// How far predictions are off.

#pragma once

#include <cstddef>
#include <vector>

namespace stepsim {

// Returns |log(predicted / measured)|: half and twice the time are equally wrong. It uses nothing
// of the C library, so it is the same on every machine. REQUIRES: both are above 0 and finite.
double log_error(double predicted, double measured);

struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0;  // of |predicted / measured - 1|; 0 where rows is 0
  double p90 = 0;     // nearest rank
};
// `relative_errors`: predicted / measured - 1.
ErrorSummary summary_of(std::vector<double> relative_errors);

}  // namespace stepsim
