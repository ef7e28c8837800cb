// overlapped() is how long two things take that a kernel does at once, such as computing and
// reading memory: the root of the sum of their powers.
//
//   overlapped<kBlocksAndMemory>(compute_s, memory_s)
//
// It is at least the longer of the two, and most beyond it where they are equal: 41 % with squares,
// 26 % with cubes, 19 % with fourth powers. The larger the power, the better one hides the other. A
// power is fitted, as a whole number: it gets a name where it is used, which says by what.

#pragma once

#include <cmath>

namespace stepsim {

template <int kPower>
double overlapped(double a, double b) {
  static_assert(kPower >= 2 && kPower <= 4,
                "roots without std::pow, which rounds differently by machine");
  if constexpr (kPower == 2) return std::sqrt(a * a + b * b);
  if constexpr (kPower == 3) return std::cbrt(a * a * a + b * b * b);
  return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b));
}

}  // namespace stepsim
