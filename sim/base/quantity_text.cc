#include "sim/base/quantity_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <system_error>

namespace stepsim {
namespace {

struct Unit {
  std::string_view name;
  double factor;  // value of one such unit in base units
};

// Base unit: byte.
constexpr std::array kByteUnits{Unit{"", 1},         Unit{"B", 1},        Unit{"kB", 1e3},
                                Unit{"KB", 1e3},     Unit{"MB", 1e6},     Unit{"GB", 1e9},
                                Unit{"TB", 1e12},    Unit{"PB", 1e15},    Unit{"KiB", 0x1p10},
                                Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30}, Unit{"TiB", 0x1p40},
                                Unit{"PiB", 0x1p50}};

// Base unit: picosecond, so that every factor is a whole number.
constexpr std::array kDurationUnits{Unit{"", 1e12},    Unit{"ps", 1},    Unit{"ns", 1e3},
                                    Unit{"us", 1e6},   Unit{"ms", 1e9},  Unit{"s", 1e12},
                                    Unit{"min", 6e13}, Unit{"h", 3.6e15}};

// Base unit: byte per second.
constexpr std::array kBandwidthUnits{
    Unit{"", 1},           Unit{"B/s", 1},        Unit{"kB/s", 1e3},     Unit{"KB/s", 1e3},
    Unit{"MB/s", 1e6},     Unit{"GB/s", 1e9},     Unit{"TB/s", 1e12},    Unit{"PB/s", 1e15},
    Unit{"KiB/s", 0x1p10}, Unit{"MiB/s", 0x1p20}, Unit{"GiB/s", 0x1p30}, Unit{"TiB/s", 0x1p40},
    Unit{"GBps", 1e9},     Unit{"TBps", 1e12},    Unit{"bps", 0.125},    Unit{"kbps", 125},
    Unit{"Kbps", 125},     Unit{"Mbps", 125e3},   Unit{"Gbps", 125e6},   Unit{"Tbps", 125e9},
    Unit{"b/s", 0.125},    Unit{"kb/s", 125},     Unit{"Kb/s", 125},     Unit{"Mb/s", 125e3},
    Unit{"Gb/s", 125e6},   Unit{"Tb/s", 125e9}};

// Base unit: floating-point operation per second.
constexpr std::array kThroughputUnits{
    Unit{"", 1},           Unit{"FLOPS", 1},     Unit{"FLOP/s", 1},     Unit{"KFLOPS", 1e3},
    Unit{"KFLOP/s", 1e3},  Unit{"MFLOPS", 1e6},  Unit{"MFLOP/s", 1e6},  Unit{"GFLOPS", 1e9},
    Unit{"GFLOP/s", 1e9},  Unit{"TFLOPS", 1e12}, Unit{"TFLOP/s", 1e12}, Unit{"PFLOPS", 1e15},
    Unit{"PFLOP/s", 1e15}, Unit{"EFLOPS", 1e18}, Unit{"EFLOP/s", 1e18}};

std::optional<double> factor_of(std::string_view text, std::span<const Unit> units) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name == text) return unit.factor;
  }
  return std::nullopt;
}

// Matches a number of type Number followed by `unit`, which may be empty.
template <typename Number>
struct Split {
  Number number{};
  std::string_view unit;
};

template <typename Number>
std::optional<Split<Number>> split(std::string_view text) {
  if (text.empty() || text.front() == '-') return std::nullopt;
  Split<Number> result;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, result.number);
  if (error != std::errc()) return std::nullopt;
  result.unit = std::string_view(rest, static_cast<std::size_t>(end - rest));
  if (result.unit.ends_with(' ')) return std::nullopt;
  return result;
}

// Returns the value in the base unit as a double.
std::optional<double> parse_rate(std::string_view text, std::span<const Unit> units) {
  const auto parts = split<double>(text);
  if (!parts) return std::nullopt;
  const auto factor = factor_of(parts->unit, units);
  if (!factor) return std::nullopt;
  const double value = parts->number * *factor;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

enum class Fraction { kRefuse, kRoundUp };

// Returns the value in the base unit as a whole number. "1.1TB" is whole although a double cannot
// hold 1.1: a product within its rounding error of a whole number counts as that number.
std::optional<std::int64_t> parse_whole(std::string_view text, std::span<const Unit> units,
                                        Fraction fraction) {
  if (const auto parts = split<std::int64_t>(text)) {
    if (const auto factor = factor_of(parts->unit, units)) {
      const auto whole_factor = static_cast<std::int64_t>(*factor);
      if (parts->number > std::numeric_limits<std::int64_t>::max() / whole_factor) {
        return std::nullopt;
      }
      return parts->number * whole_factor;
    }
  }
  const auto value = parse_rate(text, units);
  if (!value || *value >= 0x1p63) return std::nullopt;
  const double nearest = std::round(*value);
  if (nearest < 0x1p63 && std::abs(*value - nearest) <= *value * 0x1p-52) {
    return static_cast<std::int64_t>(nearest);
  }
  if (fraction == Fraction::kRefuse) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(*value));
}

std::string fixed(double value, int decimals) {
  std::array<char, 400> buffer{};  // the largest double has 309 digits before the point
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::fixed, decimals);
  return error == std::errc() ? std::string(buffer.data(), end) : std::string();
}

// Returns how many decimals leave three significant digits for a value below 1000.
int decimals_of(double value) {
  if (value < 9.995) return 2;
  return value < 99.95 ? 1 : 0;
}

// `units` goes from small to large. If `whole`, the first unit shows whole numbers without
// decimals.
std::string with_unit(double value, std::span<const Unit> units, bool whole) {
  if (value < 0) return std::string(1, '-') + with_unit(-value, units, whole);
  if (value == 0) return std::string("0 ").append(units.front().name);
  std::size_t index = 0;
  while (index + 1 < units.size() && value / units[index].factor >= 999.5) ++index;
  const double number = value / units[index].factor;
  const bool plain = index == 0 && whole;
  return fixed(number, plain ? 0 : decimals_of(number)) + " " + std::string(units[index].name);
}

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  const auto bytes = parse_whole(text, kByteUnits, Fraction::kRefuse);
  return bytes ? std::optional(Bytes(*bytes)) : std::nullopt;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto picoseconds = parse_whole(text, kDurationUnits, Fraction::kRoundUp);
  return picoseconds ? std::optional(Duration(*picoseconds)) : std::nullopt;
}

std::optional<Bandwidth> parse_bandwidth(std::string_view text) {
  const auto rate = parse_rate(text, kBandwidthUnits);
  return rate ? std::optional(Bandwidth(*rate)) : std::nullopt;
}

std::optional<Throughput> parse_throughput(std::string_view text) {
  const auto rate = parse_rate(text, kThroughputUnits);
  return rate ? std::optional(Throughput(*rate)) : std::nullopt;
}

std::string_view accepted_bytes() {
  return "a size such as 64MiB, 1.5GB or 4096 (bytes)";
}

std::string_view accepted_duration() {
  return "a time such as 5us, 1.5ms or 0.25 (seconds)";
}

std::string_view accepted_bandwidth() {
  return "a bandwidth such as 400Gbps, 50GB/s or 5e10 (bytes per second)";
}

std::string_view accepted_throughput() {
  return "a throughput such as 989TFLOPS, 1.5PFLOP/s or 1e15 (operations per second)";
}

std::string to_text(Bytes size) {
  static constexpr std::array kUnits{Unit{"B", 1}, Unit{"KB", 1e3}, Unit{"MB", 1e6},
                                     Unit{"GB", 1e9}, Unit{"TB", 1e12}};
  return with_unit(static_cast<double>(size.value()), kUnits, true);
}

std::string to_text(Duration duration) {
  static constexpr std::array kUnits{Unit{"ps", 1}, Unit{"ns", 1e3}, Unit{"us", 1e6},
                                     Unit{"ms", 1e9}, Unit{"s", 1e12}};
  if (duration == Duration::zero()) return "0 s";
  return with_unit(static_cast<double>(duration.count()), kUnits, true);
}

std::string to_text(Bandwidth rate) {
  static constexpr std::array kUnits{Unit{"B/s", 1}, Unit{"KB/s", 1e3}, Unit{"MB/s", 1e6},
                                     Unit{"GB/s", 1e9}, Unit{"TB/s", 1e12}};
  return std::isfinite(rate.value()) ? with_unit(rate.value(), kUnits, false) : "infinite";
}

std::string to_text(Throughput rate) {
  static constexpr std::array kUnits{
      Unit{"FLOP/s", 1},     Unit{"KFLOP/s", 1e3},  Unit{"MFLOP/s", 1e6}, Unit{"GFLOP/s", 1e9},
      Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}, Unit{"EFLOP/s", 1e18}};
  return std::isfinite(rate.value()) ? with_unit(rate.value(), kUnits, false) : "infinite";
}

std::string exact_seconds(Duration duration) {
  constexpr std::uint64_t kWholePicosecondsPerSecond = 1'000'000'000'000;
  const std::int64_t count = duration.count();
  const bool negative = count < 0;
  const std::uint64_t magnitude =
      negative ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  const std::string fraction = std::to_string(magnitude % kWholePicosecondsPerSecond);
  std::string result = negative ? "-" : "";
  result += std::to_string(magnitude / kWholePicosecondsPerSecond);
  result += '.';
  result.append(12 - fraction.size(), '0');
  result += fraction;
  return result;
}

}  // namespace stepsim
