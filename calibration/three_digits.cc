#include "calibration/three_digits.h"

#include <fmt/format.h>

#include <string>

#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr int kLeastDigits = 100;
constexpr int kMostDigits = 999;

}  // namespace

std::optional<ThreeDigits> ThreeDigits::of(double value) {
  if (!(value > 0) || value > 1e300 || value < 1e-290) return std::nullopt;
  const std::string text = fmt::format("{:.2e}", value);  // "1.23e-06"
  const int digits = (text[0] - '0') * 100 + (text[2] - '0') * 10 + (text[3] - '0');
  const std::string exponent = text.substr(text[5] == '+' ? 6 : 5);
  return ThreeDigits(digits, *number_in<int>(exponent) - 2);
}

double ThreeDigits::value() const {
  return *number_in<double>(fmt::format("{}e{}", digits_, exponent_));
}

ThreeDigits ThreeDigits::next() const {
  return digits_ == kMostDigits ? ThreeDigits(kLeastDigits, exponent_ + 1)
                                : ThreeDigits(digits_ + 1, exponent_);
}

ThreeDigits ThreeDigits::before() const {
  return digits_ == kLeastDigits ? ThreeDigits(kMostDigits, exponent_ - 1)
                                 : ThreeDigits(digits_ - 1, exponent_);
}

double rounded_to_three_digits(double value) {
  const std::optional<ThreeDigits> rounded = ThreeDigits::of(value);
  return rounded ? rounded->value() : 0;
}

}  // namespace stepsim
