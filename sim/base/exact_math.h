// Logarithm, exponential, normal and gamma numbers that are the same on every machine. Libraries of
// C differ in the last bits of std::log; these functions use integers, tables of integers that the
// compiler makes, and those operations on doubles that IEEE 754 rounds correctly (+ - x / and the
// square root).

#pragma once

#include <cstdint>

#include "sim/base/random.h"
#include "sim/base/units.h"

namespace stepsim {

inline constexpr int kLogBits = 56;

// Returns -ln((u + 1) / 2^64) in units of 2^-56, within 2 units: an exponential number of mean 1 if
// u is uniform.
std::uint64_t negative_log(std::uint64_t u);

// Within 1e-15 relative. REQUIRES: x > 0 and normal.
double exact_log(double x);
// Within 1e-14 relative. REQUIRES: |x| < 700.
double exact_exp(double x);

// Returns a time of this mean, exponentially distributed, rounded down. Throws std::range_error if
// it passes 106 days.
Duration exponential(Duration mean, std::uint64_t u);

// Draws of a stream, which must have no other use.
double normal(const RandomStream& stream);
double gamma(double shape, const RandomStream& stream);  // of mean `shape`. REQUIRES: shape > 0

}  // namespace stepsim
