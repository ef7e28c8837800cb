// The quantities a simulation computes with. Each is its own type, so a size cannot be passed
// where a rate is expected, nor GB where GiB was meant.
//
//   Duration    length of simulated time       whole picoseconds, int64 (±106 days)
//   Time        point on the simulated clock   Duration since the start
//   Bytes       data size                      whole bytes, int64
//   Flops       floating-point operations      double (a large step passes 2^63)
//   Bandwidth   bytes per second               double, one direction
//   Throughput  flops per second               double
//
// Times and sizes are integers because they are summed over a whole run: the sum is exact and the
// same in any order. Rates are doubles. The divisions below are the only places where a rate
// becomes a Duration, and they round up to the next picosecond, once for the whole size.
//
// GB = 10^9 bytes, GiB = 2^30; b is a bit, B a byte; a bandwidth counts one direction.

#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <ratio>
#include <stdexcept>

namespace stepsim {

using Duration = std::chrono::duration<std::int64_t, std::pico>;

inline constexpr double kPicosecondsPerSecond = 1e12;

struct Time {
  Duration since_start{};

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time t, Duration d) { return {t.since_start + d}; }
  friend constexpr Duration operator-(Time a, Time b) { return a.since_start - b.since_start; }
};

// Quantity is a number with a dimension. Only quantities of the same dimension add and compare.
template <typename Dimension, typename Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(Rep factor, Quantity q) {
    return Quantity(factor * q.value_);
  }
  friend constexpr Quantity operator/(Quantity q, Rep divisor) {
    return Quantity(q.value_ / divisor);
  }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct ByteDimension, std::int64_t>;
using Flops = Quantity<struct FlopDimension, double>;
using Bandwidth = Quantity<struct BytesPerSecondDimension, double>;
using Throughput = Quantity<struct FlopsPerSecondDimension, double>;

// Rounds up to the next picosecond. Throws std::range_error unless 0 <= picoseconds < 9.2e18, which
// is 106 days.
inline Duration duration_from_picoseconds(double picoseconds) {
  constexpr double kLimit = 9.2e18;
  const double whole = std::ceil(picoseconds);
  if (!(whole >= 0 && whole < kLimit)) throw std::range_error("duration out of range");
  return Duration(static_cast<std::int64_t>(whole));
}
inline Duration duration_from_seconds(double seconds) {
  return duration_from_picoseconds(seconds * 1e12);
}

inline double to_seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

// Returns the time to move or compute the whole size at a constant rate. It scales before it
// divides, so a quotient that is a whole number of picoseconds comes out exactly.
inline Duration operator/(Bytes size, Bandwidth rate) {
  return duration_from_picoseconds(static_cast<double>(size.value()) * 1e12 / rate.value());
}
inline Duration operator/(Flops work, Throughput rate) {
  return duration_from_picoseconds(work.value() * 1e12 / rate.value());
}

namespace literals {
using namespace std::chrono_literals;
constexpr Bytes operator""_B(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n));
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 20);
}
constexpr Bytes operator""_GB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) * 1'000'000'000);
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 30);
}
constexpr Bandwidth operator""_Gbps(unsigned long long n) {
  return Bandwidth(static_cast<double>(n) * 1e9 / 8);
}
constexpr Bandwidth operator""_GBps(unsigned long long n) {
  return Bandwidth(static_cast<double>(n) * 1e9);
}
constexpr Throughput operator""_TFLOPS(unsigned long long n) {
  return Throughput(static_cast<double>(n) * 1e12);
}
}  // namespace literals

}  // namespace stepsim
