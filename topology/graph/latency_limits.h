// What a latency of a cluster may be: at most a second, which is three times the way to a satellite
// and back. A slip of a unit ("1000000s") is then said of its field, and not of a time that passes
// all limits.

#pragma once

#include "sim/fields/field.h"

namespace stepsim {

inline Limits latency_limits() {
  return Limits::between(0, 1);  // seconds
}

}  // namespace stepsim
