// Text<T> says how a value of type T is written by a person: in files, flags and documentation.
//
//   Text<T>::accepts()    what read() takes: "a whole number", "ring, zigzag_ring or ulysses"
//   Text<T>::read(text)   the value; nothing if the text isn't one
//   Text<T>::write(value) a text that read() turns into the same value
//   Text<T>::hint(text)   what a text that can't be read probably meant: "; did you mean 8192?"; or
//                         nothing
//   Text<T>::number(value) what limits apply to, in base units; only types that can have limits
//
// Here are numbers, truth values, strings, enumerations and lists. sim/fields/quantity_field.h has
// quantities with units. Other types specialise Text beside themselves.

#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace stepsim {

template <class T>
struct Text;

// The number of values of an enumeration, which are numbered from 0. name_of(value) gives their
// names. Specialise this where the fields of the enumeration are declared.
template <class Enumeration>
inline constexpr std::size_t kValuesOf = 0;

// Returns "; did you mean 8192 (8 x 1024) or 8000?" for "8k", or "" if the text resembles no
// number.
std::string hint_for_whole_number(std::string_view text);
std::string hint_for_truth(std::string_view text);  // "; did you mean true?" for "yes"
std::string hint_for_name(std::string_view text, const std::vector<std::string>& names);

// Returns a text for a message: at most so many bytes of whole characters, and an ellipsis.
std::string shortened(std::string_view text, std::size_t most = 60);
std::string write_double(double value);  // the shortest text that reads back as the same number
std::string either_of(const std::vector<std::string>& names);                     // "a, b or c"
std::vector<std::string_view> split_text(std::string_view text, char separator);  // never empty

// Returns what stands between blanks and line ends. (A std::istringstream that finds no memory ends
// early and throws nothing.)
std::vector<std::string_view> words_of(std::string_view text);

// Reads the whole text as a number.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

template <std::integral T>
struct Text<T> {
  static std::string accepts() { return "a whole number"; }
  static std::optional<T> read(std::string_view text) { return number_in<T>(text); }
  static std::string write(T value) { return std::to_string(value); }
  static double number(T value) { return static_cast<double>(value); }
  static std::string hint(std::string_view text) { return hint_for_whole_number(text); }
};

template <>
struct Text<bool> {
  static std::string accepts() { return "true or false"; }
  static std::optional<bool> read(std::string_view text) {
    if (text == "true") return true;
    if (text == "false") return false;
    return std::nullopt;
  }
  static std::string write(bool value) { return value ? "true" : "false"; }
  static std::string hint(std::string_view text) { return hint_for_truth(text); }
};

template <>
struct Text<double> {
  static std::string accepts() { return "a number"; }
  static std::optional<double> read(std::string_view text) { return number_in<double>(text); }
  static std::string write(double value) { return write_double(value); }
  static double number(double value) { return value; }
  static std::string hint(std::string_view) { return ""; }
};

template <>
struct Text<std::string> {
  static std::string accepts() { return "a text"; }
  static std::optional<std::string> read(std::string_view text) { return std::string(text); }
  static std::string write(const std::string& value) { return value; }
  static std::string hint(std::string_view) { return ""; }
};

template <class Enumeration>
requires std::is_enum_v<Enumeration>
struct Text<Enumeration> {
  static_assert(kValuesOf<Enumeration> > 0, "kValuesOf says how many values there are");

  static std::vector<std::string> names() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kValuesOf<Enumeration>; ++i) {
      names.emplace_back(name_of(static_cast<Enumeration>(i)));
    }
    return names;
  }
  static std::string accepts() { return either_of(names()); }
  static std::optional<Enumeration> read(std::string_view text) {
    for (std::size_t i = 0; i < kValuesOf<Enumeration>; ++i) {
      if (name_of(static_cast<Enumeration>(i)) == text) return static_cast<Enumeration>(i);
    }
    return std::nullopt;
  }
  static std::string write(Enumeration value) { return std::string(name_of(value)); }
  static std::string hint(std::string_view text) { return hint_for_name(text, names()); }
};

// "1,2,3"; the empty text is the empty list.
template <class T>
struct Text<std::vector<T>> {
  static std::string accepts() { return Text<T>::accepts() + ", or several separated by commas"; }
  static std::optional<std::vector<T>> read(std::string_view text) {
    std::vector<T> values;
    if (text.empty()) return values;
    for (const std::string_view part : split_text(text, ',')) {
      const std::optional<T> value = Text<T>::read(part);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  }
  static std::string write(const std::vector<T>& values) {
    std::string text;
    for (const T& value : values) text += (text.empty() ? "" : ",") + Text<T>::write(value);
    return text;
  }
  static std::string hint(std::string_view) { return ""; }
};

}  // namespace stepsim
