// ExactBytes is a sum of bytes and of fractions of them, in 2^-40 bytes. Sums are integers, so they
// are the same in any order, and n equal parts are n times one of them.

#pragma once

#include <cmath>
#include <cstdint>

#include "sim/base/units.h"

namespace stepsim {

class ExactBytes {
 public:
  constexpr ExactBytes() = default;
  constexpr explicit ExactBytes(Bytes bytes) : parts_(Parts{bytes.value()} << kBits) {}

  // Returns `bytes` times `weight`, rounded to the nearest part. REQUIRES: weight >= 0.
  static ExactBytes of(Bytes bytes, double weight) {
    if (weight == 1) return ExactBytes(bytes);
    ExactBytes result;
    result.parts_ = static_cast<Parts>(
        std::nearbyint(std::ldexp(static_cast<double>(bytes.value()) * weight, kBits)));
    return result;
  }

  double value() const { return std::ldexp(static_cast<double>(parts_), -kBits); }

  constexpr ExactBytes& operator+=(ExactBytes other) {
    parts_ += other.parts_;
    return *this;
  }
  friend constexpr ExactBytes operator-(ExactBytes a, ExactBytes b) {
    a.parts_ -= b.parts_;
    return a;
  }
  friend constexpr ExactBytes operator*(std::uint64_t times, ExactBytes bytes) {
    bytes.parts_ *= static_cast<Parts>(times);
    return bytes;
  }
  friend constexpr ExactBytes operator/(ExactBytes bytes, std::uint64_t parts) {
    bytes.parts_ /= static_cast<Parts>(parts);
    return bytes;
  }
  friend constexpr bool operator==(ExactBytes, ExactBytes) = default;

 private:
  __extension__ using Parts = __int128;
  static constexpr int kBits = 40;

  Parts parts_ = 0;
};

}  // namespace stepsim
