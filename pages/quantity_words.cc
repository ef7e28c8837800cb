#include "pages/quantity_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/base/json_text.h"

namespace stepsim {
namespace {

constexpr int kDigits = 4;
constexpr double kMostWritten = 1e15;  // larger ones have an exponent: "3.768e18"

struct UnitScale {
  double size = 1;
  std::string_view unit;
};

// Writes with four significant digits, and all digits of a whole part: "1.235", "0.01235",
// "46,036".
std::string significant(double number) {
  if (number == 0) return "0";
  if (std::abs(number) >= kMostWritten) {
    std::string text = fmt::format("{:.3e}", number);
    return text.erase(text.find('+'), 1);
  }
  const int whole = static_cast<int>(std::floor(std::log10(std::abs(number)))) + 1;
  std::string text = fmt::format("{:.{}f}", number, std::clamp(kDigits - whole, 0, 12));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  const std::size_t end = std::min(text.find('.'), text.size());
  const std::size_t begin = text.starts_with('-') ? 1 : 0;
  for (std::size_t at = end; at > begin + 3;) text.insert(at -= 3, ",");
  return text;
}

Shown shown_of(double value, std::string text, std::string key) {
  if (!std::isfinite(value)) return {"-"};
  return {std::move(text), json_number(value), std::move(key)};
}

template <std::size_t kCount>
std::string scaled_text(double value, const std::array<UnitScale, kCount>& scales) {
  if (!std::isfinite(value)) return "";
  if (value == 0) return "0 " + std::string(scales[0].unit);
  for (const UnitScale& scale : scales) {
    if (std::abs(value) >= scale.size) {
      return significant(value / scale.size) + " " + std::string(scale.unit);
    }
  }
  return significant(value / scales.back().size) + " " + std::string(scales.back().unit);
}

}  // namespace

Shown shown_seconds(double seconds, std::string key) {
  constexpr std::array<UnitScale, 4> kScales = {
      {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  return shown_of(seconds, scaled_text(seconds, kScales), std::move(key));
}

Shown shown_bytes(double bytes, std::string key) {
  constexpr std::array<UnitScale, 6> kScales = {
      {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}, {1, "B"}}};
  return shown_of(bytes, bytes == 0 ? "0 B" : scaled_text(bytes, kScales), std::move(key));
}

Shown shown_energy(double joules, std::string key) {
  constexpr double kWattHour = 3600;  // joules
  constexpr std::array<UnitScale, 6> kScales = {{{1e9 * kWattHour, "GWh"},
                                                 {1e6 * kWattHour, "MWh"},
                                                 {1e3 * kWattHour, "kWh"},
                                                 {1e3, "kJ"},
                                                 {1, "J"},
                                                 {1e-3, "mJ"}}};
  return shown_of(joules, joules == 0 ? "0 J" : scaled_text(joules, kScales), std::move(key));
}

Shown shown_percent(double fraction, std::string key) {
  return shown_of(fraction, fmt::format("{:.1f} %", 100 * fraction), std::move(key));
}

Shown shown_number(double number, std::string key) {
  return shown_of(number, std::isfinite(number) ? significant(number) : "", std::move(key));
}

Shown shown_rate(double per_second, std::string_view unit, std::string key) {
  const std::string name = std::string(unit) + "/s";
  const std::array<std::string, 5> units = {"P" + name, "T" + name, "G" + name, "M" + name, name};
  const std::array<UnitScale, 5> scales = {
      {{1e15, units[0]}, {1e12, units[1]}, {1e9, units[2]}, {1e6, units[3]}, {1, units[4]}}};
  return shown_of(per_second, per_second == 0 ? "0 " + name : scaled_text(per_second, scales),
                  std::move(key));
}

Shown shown_change(double fraction, std::string key) {
  return shown_of(fraction, fmt::format("{:+.2f} %", 100 * fraction), std::move(key));
}

std::string words_of_key(std::string_view key) {
  std::string words(key);
  std::ranges::replace(words, '_', ' ');
  return words;
}

}  // namespace stepsim
