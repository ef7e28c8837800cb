// ThreeDigits is a positive number with three significant digits. Fitted constants are such
// numbers: more digits would say more than the measurements do, and differ from machine to machine.

#pragma once

#include <optional>

namespace stepsim {

class ThreeDigits {
 public:
  // Rounds to the nearest. Returns nullopt for 0 and what is no positive number.
  static std::optional<ThreeDigits> of(double value);

  double value() const;      // 1.23e-6: the double nearest to the decimal number
  ThreeDigits next() const;  // 999 is followed by 1,000
  ThreeDigits before() const;

 private:
  ThreeDigits(int digits, int exponent) : digits_(digits), exponent_(exponent) {}

  int digits_;  // 100 to 999
  int exponent_;
};

// Returns 0 for 0.
double rounded_to_three_digits(double value);

}  // namespace stepsim
