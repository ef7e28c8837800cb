#include <boost/math/distributions/normal.hpp>
#include <cassert>

#include "sim/chips/chip_spec.h"

namespace stepsim {

double expected_largest_normal(std::int64_t n) {
  assert(n >= 1);
  const auto of = static_cast<double>(n);
  return boost::math::quantile(boost::math::normal(), (of - 0.375) / (of + 0.25));
}

}  // namespace stepsim
