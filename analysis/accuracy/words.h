// What readers of words in tables share.

#pragma once

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <string_view>

#include "sim/base/small_letters.h"

namespace stepsim {

inline bool is_word_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Returns the letters, small, and digits of a name that is written in many ways: "gptoss120b".
inline std::string letters_and_digits(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) result += small_letter(letter);
  }
  return result;
}

}  // namespace stepsim
