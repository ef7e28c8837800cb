#include "sim/base/field_text.h"

#include <array>
#include <cmath>

#include "sim/base/small_letters.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

// A suffix may be ambiguous: "k" means 1000 or 1024.
struct Multiplier {
  char letter;
  std::int64_t decimal;
  std::int64_t binary;
};
constexpr Multiplier kMultipliers[] = {
    {'k', 1'000, 1 << 10}, {'m', 1'000'000, 1 << 20}, {'g', 1'000'000'000, 1 << 30}};

std::string meant(std::int64_t value) {
  return "; did you mean " + std::to_string(value) + "?";
}

std::string hint_for_multiplier(std::string_view text) {
  const bool is_binary = text.ends_with('i');
  if (is_binary) text.remove_suffix(1);
  if (text.empty()) return "";
  const char letter = small_letter(text.back());
  const auto count = number_in<std::int64_t>(text.substr(0, text.size() - 1));
  for (const Multiplier& multiplier : kMultipliers) {
    if (multiplier.letter != letter || !count || *count < 0 || *count > 1'000'000) continue;
    if (is_binary) return meant(*count * multiplier.binary);
    return "; did you mean " + std::to_string(*count * multiplier.binary) + " (binary) or " +
           std::to_string(*count * multiplier.decimal) + "?";
  }
  return "";
}

}  // namespace

std::string hint_for_whole_number(std::string_view text) {
  if (number_in<std::int64_t>(text)) return "";  // a number, but too large
  std::string digits;
  for (const char letter : text) {
    if (letter != '_' && letter != '\'' && letter != ' ') digits += letter;
  }
  if (digits.empty()) return "";
  constexpr double kMost = 1e15;  // every whole number up to here is a double
  const auto value = number_in<double>(digits);
  if (value && std::floor(*value) == *value && std::abs(*value) <= kMost) {
    return meant(static_cast<std::int64_t>(*value));
  }
  return hint_for_multiplier(digits);
}

std::string hint_for_truth(std::string_view text) {
  const std::string word = in_small_letters(text);
  for (const char* yes : {"true", "yes", "on", "1", "t", "y"}) {
    if (word == yes) return "; did you mean true?";
  }
  for (const char* no : {"false", "no", "off", "0", "f", "n", "none"}) {
    if (word == no) return "; did you mean false?";
  }
  return "";
}

std::string hint_for_name(std::string_view text, const std::vector<std::string>& names) {
  return did_you_mean(text, names);
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return std::string(text.substr(0, most)) + "...";
}

std::string write_double(double value) {
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string either_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::vector<std::string_view> split_text(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

}  // namespace stepsim
