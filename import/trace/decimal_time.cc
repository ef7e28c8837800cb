#include "import/trace/decimal_time.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr int kMostBehindPoint = 18;

// The digits of a number, and how many of them stand behind its point.
struct Digits {
  std::int64_t value = 0;
  int behind_point = 0;
  bool rounds_up = false;  // the first digit that was left out is 5 or more
  bool leaves_out = false;
};

// Moves `text` behind the digits. False if there are too many.
bool read_digits(std::string_view& text, int most_behind_point, Digits& digits) {
  bool is_behind = false;
  while (!text.empty() && (is_digit(text[0]) || (text[0] == '.' && !is_behind))) {
    const char c = text[0];
    text.remove_prefix(1);
    if (c == '.') {
      is_behind = true;
      continue;
    }
    if (is_behind && digits.behind_point == most_behind_point) {
      if (!digits.leaves_out) digits.rounds_up = c >= '5';
      digits.leaves_out = true;
      continue;
    }
    if (__builtin_mul_overflow(digits.value, std::int64_t{10}, &digits.value) ||
        __builtin_add_overflow(digits.value, std::int64_t{c - '0'}, &digits.value)) {
      return false;
    }
    digits.behind_point += is_behind ? 1 : 0;
  }
  return true;
}

std::optional<std::int64_t> shifted(std::int64_t value, int places) {
  for (; places > 0; --places) {
    if (value > std::numeric_limits<std::int64_t>::max() / 10) return std::nullopt;
    value *= 10;
  }
  for (; places < 0; ++places) value /= 10;
  return value;
}

}  // namespace

std::optional<std::int64_t> nanoseconds_in(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\t' ||
                           text.back() == '\r' || text.back() == ',')) {
    text.remove_suffix(1);
  }
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || !is_digit(text[0])) return std::nullopt;
  const bool has_exponent = text.find_first_of("eE") != std::string_view::npos;
  Digits digits;
  if (!read_digits(text, has_exponent ? kMostBehindPoint : 3, digits)) return std::nullopt;
  int exponent = 0;
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    if (text.starts_with('+')) text.remove_prefix(1);
    const std::optional<int> read = number_in<int>(text);
    if (!read || *read > 30 || *read < -30) return std::nullopt;
    exponent = *read;
    text = {};
  }
  if (!text.empty()) return std::nullopt;
  const auto value = shifted(digits.value, exponent + 3 - digits.behind_point);
  if (!value) return std::nullopt;
  const std::int64_t rounded = *value + (digits.rounds_up ? 1 : 0);
  return is_negative ? -rounded : rounded;
}

std::string microseconds_text(std::int64_t nanoseconds) {
  return fmt::format("{}{}.{:03}", nanoseconds < 0 ? "-" : "", std::abs(nanoseconds) / 1000,
                     std::abs(nanoseconds) % 1000);
}

}  // namespace stepsim
