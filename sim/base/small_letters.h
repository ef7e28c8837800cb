// Small letters, for words that count as the same however their letters are written.
//
//   in_small_letters("BFloat16")  // "bfloat16"
//
// Only A to Z have a small letter: all other bytes stay as they are, in every locale. Digits are 0
// to 9.

#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace stepsim {

constexpr char small_letter(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

constexpr bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

inline std::string in_small_letters(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), small_letter);
  return result;
}

}  // namespace stepsim
