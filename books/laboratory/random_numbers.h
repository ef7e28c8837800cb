// Random numbers that are the same on every machine. The distributions of the standard library are
// not: vendors choose their algorithms.
//
// The generator is SplitMix64 (Steele, Lea, Flood 2014): 64 bits from a counter.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace stepsim {

class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}

  // Returns a number in [0, 1) with 53 random bits.
  double uniform() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
    bits ^= bits >> 31;
    return static_cast<double>(bits >> 11) * 0x1.0p-53;
  }

  // Returns a number with mean 1.
  double exponential() { return -std::log1p(-uniform()); }

  // Returns a whole number from 1 on.
  double geometric(double mean) {
    return std::max(1.0, std::ceil(std::log1p(-uniform()) / std::log1p(-1 / mean)));
  }

 private:
  std::uint64_t state_;
};

}  // namespace stepsim
