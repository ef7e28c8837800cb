#include "sim/base/units.h"

#include <stdexcept>

namespace stepsim {

void refuse_time() {
  throw std::range_error("a time passes 106 days, the longest that is simulated");
}

void refuse_size() {
  throw std::range_error("a size passes 9.2 EB, the largest that is simulated");
}

void checked::refuse_division_by_zero() {
  throw std::domain_error("a time or a size is divided by zero");
}

}  // namespace stepsim
