// The quantities a simulation computes with. Each is its own type, so a size cannot be passed
// where a rate is expected, nor GB where GiB was meant.
//
//   Duration    length of simulated time       whole picoseconds, int64 (±106 days)
//   Time        point on the simulated clock   Duration since the start
//   Bytes       data size                      whole bytes, int64 (±9.2 EB)
//   Flops       floating-point operations      double (a large step passes 2^63)
//   Bandwidth   bytes per second               double, one direction
//   Throughput  flops per second               double
//
// Times and sizes are integers because they are summed over a whole run: the sum is exact and the
// same in any order. They never wrap, in any build: a sum, difference or product that does not fit
// throws std::range_error, and a division by zero std::domain_error. Rates and Flops are doubles,
// which do not wrap; one that is infinite or not a number gives no Duration. The divisions below
// are the only places where a rate becomes a Duration, and they round up to the next picosecond,
// once for the whole size.
//
// GB = 10^9 bytes, GiB = 2^30; b is a bit, B a byte; a bandwidth counts one direction.

#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ratio>

namespace stepsim {

// Both throw std::range_error, whose words say what is out of range.
[[noreturn]] void refuse_time();
[[noreturn]] void refuse_size();

// The arithmetic of the whole number behind a quantity; `refuse` ends what would wrap.
namespace checked {

[[noreturn]] void refuse_division_by_zero();  // throws std::domain_error

template <void (*refuse)()>
constexpr std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) [[unlikely]]
    refuse();
  return sum;
}
template <void (*refuse)()>
constexpr std::int64_t subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) [[unlikely]]
    refuse();
  return difference;
}
template <void (*refuse)()>
constexpr std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) [[unlikely]]
    refuse();
  return product;
}
template <void (*refuse)()>
constexpr std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (b == 0) [[unlikely]]
    refuse_division_by_zero();
  return b == -1 ? subtract<refuse>(0, a) : a / b;
}

}  // namespace checked

// A length of simulated time, in whole picoseconds. The lengths of <chrono> convert to it (10us).
class Duration {
 public:
  constexpr Duration() = default;
  constexpr explicit Duration(std::int64_t picoseconds) : picoseconds_(picoseconds) {}
  // A unit is a whole number of picoseconds.
  template <std::integral Rep, typename Unit>
  constexpr Duration(std::chrono::duration<Rep, Unit> length)
      : picoseconds_(checked::multiply<refuse_time>(length.count(),
                                                    std::ratio_divide<Unit, std::pico>::num)) {
    static_assert(std::ratio_divide<Unit, std::pico>::den == 1);
  }
  static constexpr Duration zero() { return Duration(); }
  static constexpr Duration min() { return Duration(std::numeric_limits<std::int64_t>::min()); }
  static constexpr Duration max() { return Duration(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t count() const { return picoseconds_; }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) {
    return Duration(checked::add<refuse_time>(a.picoseconds_, b.picoseconds_));
  }
  friend constexpr Duration operator-(Duration a, Duration b) {
    return Duration(checked::subtract<refuse_time>(a.picoseconds_, b.picoseconds_));
  }
  friend constexpr Duration operator*(std::int64_t factor, Duration d) {
    return Duration(checked::multiply<refuse_time>(factor, d.picoseconds_));
  }
  friend constexpr Duration operator*(Duration d, std::int64_t factor) { return factor * d; }
  friend constexpr Duration operator/(Duration d, std::int64_t divisor) {
    return Duration(checked::divide<refuse_time>(d.picoseconds_, divisor));
  }
  constexpr Duration& operator+=(Duration other) { return *this = *this + other; }
  constexpr Duration& operator-=(Duration other) { return *this = *this - other; }

 private:
  std::int64_t picoseconds_ = 0;
};

inline constexpr double kPicosecondsPerSecond = 1e12;

struct Time {
  Duration since_start{};

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time t, Duration d) { return {t.since_start + d}; }
  friend constexpr Duration operator-(Time a, Time b) { return a.since_start - b.since_start; }
};

// A data size, in whole bytes.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t bytes) : bytes_(bytes) {}
  constexpr std::int64_t value() const { return bytes_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    return Bytes(checked::add<refuse_size>(a.bytes_, b.bytes_));
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    return Bytes(checked::subtract<refuse_size>(a.bytes_, b.bytes_));
  }
  friend constexpr Bytes operator*(std::int64_t factor, Bytes size) {
    return Bytes(checked::multiply<refuse_size>(factor, size.bytes_));
  }
  friend constexpr Bytes operator/(Bytes size, std::int64_t divisor) {
    return Bytes(checked::divide<refuse_size>(size.bytes_, divisor));
  }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

 private:
  std::int64_t bytes_ = 0;
};

// Quantity is a real number with a dimension. Only quantities of the same dimension add and
// compare.
template <typename Dimension>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}
  constexpr double value() const { return value_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(double factor, Quantity q) {
    return Quantity(factor * q.value_);
  }
  friend constexpr Quantity operator/(Quantity q, double divisor) {
    return Quantity(q.value_ / divisor);
  }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }

 private:
  double value_ = 0;
};

using Flops = Quantity<struct FlopDimension>;
using Bandwidth = Quantity<struct BytesPerSecondDimension>;
using Throughput = Quantity<struct FlopsPerSecondDimension>;

inline constexpr double kTimeLimit = 9.2e18;  // picoseconds: 106 days

// Rounds up to the next picosecond. Throws std::range_error unless 0 <= picoseconds < kTimeLimit.
inline Duration duration_from_picoseconds(double picoseconds) {
  const double whole = std::ceil(picoseconds);
  if (!(whole >= 0 && whole < kTimeLimit)) refuse_time();
  return Duration(static_cast<std::int64_t>(whole));
}
// Rounds up to the next byte. Throws std::range_error unless 0 <= bytes < 2^63.
inline Bytes bytes_rounded_up(double bytes) {
  const double whole = std::ceil(bytes);
  if (!(whole >= 0 && whole < 0x1p63)) refuse_size();
  return Bytes(static_cast<std::int64_t>(whole));
}

inline Duration duration_from_seconds(double seconds) {
  return duration_from_picoseconds(seconds * 1e12);
}

inline double to_seconds(Duration d) {
  return static_cast<double>(d.count()) / kPicosecondsPerSecond;
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
