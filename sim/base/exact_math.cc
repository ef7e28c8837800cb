#include "sim/base/exact_math.h"

#include <array>
#include <bit>
#include <cassert>
#include <cmath>

namespace stepsim {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr int kFractionBits = 60;  // of logarithms of numbers from 1 to 2
constexpr std::size_t kLogTable = 256;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// Returns 2 atanh(numerator / denominator), in units of 2^-60. REQUIRES: a quotient of at most 1/3.
constexpr std::uint64_t twice_atanh(std::uint64_t numerator, std::uint64_t denominator) {
  const Wide z = (Wide{numerator} << 62) / denominator;
  const Wide square = (z * z) >> 62;
  Wide power = z;
  Wide sum = 0;
  for (std::uint64_t k = 1; power != 0; k += 2) {
    sum += power / k;
    power = (power * square) >> 62;
  }
  return static_cast<std::uint64_t>(sum >> 1);
}

// ln(1 + i / 256) = 2 atanh(i / (512 + i)).
constexpr std::array<std::uint64_t, kLogTable> kLogs = [] {
  std::array<std::uint64_t, kLogTable> logs{};
  for (std::size_t i = 0; i < kLogTable; ++i) logs[i] = twice_atanh(i, 512 + i);
  return logs;
}();
constexpr std::uint64_t kLogOfTwo = twice_atanh(1, 3);

// Returns ln(m / 2^63) in units of 2^-60. REQUIRES: the highest bit of m is set.
std::uint64_t log_of_mantissa(std::uint64_t m) {
  const std::uint64_t i = m >> 55 & 0xff;
  const std::uint64_t start = std::uint64_t{1} << 63 | i << 55;
  // ln(1 + r) for r below 2^-8: the eighth term is below 2^-64.
  const auto r = static_cast<std::uint64_t>((Wide{m - start} << kFractionBits) / start);
  std::uint64_t power = r;
  std::uint64_t plus = r;
  std::uint64_t minus = 0;
  for (std::uint64_t k = 2; k < 8; ++k) {
    power = static_cast<std::uint64_t>(Wide{power} * r >> kFractionBits);
    (k % 2 == 0 ? minus : plus) += power / k;
  }
  return kLogs[i] + plus - minus;
}

// Uniform above 0 and below 1.
double open_unit(std::uint64_t u) {
  return (static_cast<double>(u >> 12) + 0.5) * 0x1p-52;
}

}  // namespace

std::uint64_t negative_log(std::uint64_t u) {
  const std::uint64_t v = u + 1;
  if (v == 0) return 0;
  const int zeros = std::countl_zero(v);
  const Wide whole = Wide{static_cast<std::uint64_t>(zeros) + 1} * kLogOfTwo;
  const Wide log = whole - log_of_mantissa(v << zeros);
  return static_cast<std::uint64_t>(log >> (kFractionBits - kLogBits));
}

double exact_log(double x) {
  assert(std::isnormal(x) && x > 0);
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const std::uint64_t mantissa = std::uint64_t{1} << 63 | (bits & ((std::uint64_t{1} << 52) - 1))
                                                              << 11;
  return exponent * kLn2 + static_cast<double>(log_of_mantissa(mantissa)) * 0x1p-60;
}

// e^x = 2^n e^f with |f| <= ln 2 / 2; the series of e^f to its sixteenth term.
double exact_exp(double x) {
  assert(std::abs(x) < 700);
  const double n = std::floor(x / kLn2 + 0.5);
  constexpr double kLn2High = 0x1.62e42fefap-1;  // n times it is exact
  constexpr double kLn2Low = 0x1.cf79abc9e3b39p-40;
  const double f = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1;
  for (int k = 16; k >= 1; --k) sum = 1 + sum * f / k;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<int>(n) + 1023) << 52);
}

Duration exponential(Duration mean, std::uint64_t u) {
  const Wide length = Wide{static_cast<std::uint64_t>(mean.count())} * negative_log(u);
  const auto whole = static_cast<std::uint64_t>(length >> kLogBits);
  if (whole > static_cast<std::uint64_t>(Duration::max().count())) refuse_time();
  return Duration(static_cast<std::int64_t>(whole));
}

// Marsaglia's polar method.
double normal(const RandomStream& stream) {
  for (std::uint64_t i = 0;; i += 2) {
    const double x = 2 * open_unit(stream.at(i)) - 1;
    const double y = 2 * open_unit(stream.at(i + 1)) - 1;
    const double square = x * x + y * y;
    if (square < 1 && square > 0) return x * std::sqrt(-2 * exact_log(square) / square);
  }
}

// Marsaglia and Tsang (2000). A shape below 1 is that of shape + 1, times U^(1 / shape).
double gamma(double shape, const RandomStream& stream) {
  assert(shape > 0);
  if (shape < 1) {
    const double log = exact_log(open_unit(stream.at(0))) / shape;
    const RandomStream rest = stream.next();
    return log < -690 ? 0 : gamma(shape + 1, rest) * exact_exp(log);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  RandomStream draws = stream;
  while (true) {
    draws = draws.next();
    const double z = normal(draws);
    const double root = 1 + c * z;
    if (root <= 0) continue;
    const double v = root * root * root;
    draws = draws.next();
    const double log = exact_log(open_unit(draws.at(0)));
    if (log < z * z / 2 + d - d * v + d * exact_log(v)) return d * v;
  }
}

}  // namespace stepsim
