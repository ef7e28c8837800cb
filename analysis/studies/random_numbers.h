// Random numbers that are the same on every machine: the standard library leaves to its vendors
// what its distributions draw.
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

  // In [0, 1), 53 bits.
  double uniform() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
    bits ^= bits >> 31;
    return static_cast<double>(bits >> 11) * 0x1.0p-53;
  }

  // Of mean 1.
  double exponential() { return -std::log1p(-uniform()); }

  // Whole, from 1 on.
  double geometric(double mean) {
    return std::max(1.0, std::ceil(std::log1p(-uniform()) / std::log1p(-1 / mean)));
  }

 private:
  std::uint64_t state_;
};

}  // namespace stepsim
