// Text<Bandwidth> and similar: how fields read and write quantities with units.

#pragma once

#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/units.h"

namespace stepsim {

// Returns "; did you mean 400Gbps?" for "400gbps": the same text with the spelling of an existing
// unit.
std::string hint_for_quantity(std::string_view text, bool (*is_read)(std::string_view));

// `Parse` reads a text. `Accepted` says what it reads. The text written is exact, in base units.
template <class Quantity, auto Parse, auto Accepted>
struct QuantityText {
  static std::string accepts() { return std::string(Accepted()) + ", not negative"; }
  static std::optional<Quantity> read(std::string_view text) { return Parse(text); }
  static std::string write(Quantity value) {
    const auto number = value.value();
    return Text<std::remove_const_t<decltype(number)>>::write(number);
  }
  static double number(Quantity value) { return static_cast<double>(value.value()); }
  static std::string hint(std::string_view text) {
    return hint_for_quantity(text, [](std::string_view other) { return Parse(other).has_value(); });
  }
};

template <>
struct Text<Bytes> : QuantityText<Bytes, parse_bytes, accepted_bytes> {};
template <>
struct Text<Bandwidth> : QuantityText<Bandwidth, parse_bandwidth, accepted_bandwidth> {};
template <>
struct Text<Throughput> : QuantityText<Throughput, parse_throughput, accepted_throughput> {};

template <>
struct Text<Duration> {
  static std::string accepts() { return std::string(accepted_duration()) + ", not negative"; }
  static std::optional<Duration> read(std::string_view text) { return parse_duration(text); }
  static std::string write(Duration value) { return exact_seconds(value); }
  static double number(Duration value) { return to_seconds(value); }
  static std::string hint(std::string_view text) {
    return hint_for_quantity(
        text, [](std::string_view other) { return parse_duration(other).has_value(); });
  }
};

}  // namespace stepsim
