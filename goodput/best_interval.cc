#include "goodput/best_interval.h"

#include <algorithm>
#include <cmath>

#include "sim/base/exact_math.h"

namespace stepsim {

// With x = interval / M and c = C / M the condition is x + ln(1 - x) + c = 0. It falls from c at
// x = 0 without end, so it has one root, which bisection finds. For small c the sum cancels: there
// x = sqrt(2 c), to a relative sqrt(c) / 3.
Ticks best_interval(Ticks stall, Ticks mean) {
  constexpr double kSmall = 1e-12;
  constexpr int kHalvings = 60;
  const auto all = static_cast<double>(mean);
  const double c = static_cast<double>(stall) / all;
  if (c < kSmall) return static_cast<Ticks>(all * std::sqrt(2 * c));
  double low = 0;
  double high = 1 - 0x1p-50;
  for (int i = 0; i < kHalvings; ++i) {
    const double x = (low + high) / 2;
    (x + exact_log(1 - x) + c > 0 ? low : high) = x;
  }
  return static_cast<Ticks>(all * low);
}

}  // namespace stepsim
