#include "proto/network_case/case_text.h"

#include <cctype>
#include <string_view>

namespace stepsim {
namespace {

constexpr std::size_t kLongest = 16 << 20;
constexpr std::string_view kSeparators = "{}[]:,";

}  // namespace

std::span<char> CaseText::next_block() {
  translated_.clear();
  while (translated_.empty() && !is_at_end_ && problem_.empty()) {
    const std::span<const char> block = input_.next();
    for (const char character : block) translate(character);
    if (length_ > kLongest) {
      problem_ = "has a text or a gap of more than 16 MiB";
      translated_.clear();
    }
    if (!block.empty()) continue;
    is_at_end_ = true;
    if (is_minus_held_) translated_ += '-';
    if (in_word_) end_word();
  }
  return translated_;
}

void CaseText::end_word() {
  translated_ += '"';
  in_word_ = false;
}

void CaseText::translate(char character) {
  ++length_;
  if (in_word_) {
    if (std::isalpha(static_cast<unsigned char>(character)) != 0) {
      translated_ += character;
      return;
    }
    end_word();
  }
  if (in_string_) {
    in_string_ = is_escaped_ || character != '"';
    is_escaped_ = !is_escaped_ && character == '\\';
  } else if (character == 'N' || character == 'I') {
    in_word_ = true;
    translated_ += is_minus_held_ ? "\"-" : "\"";
    is_minus_held_ = false;
  } else {
    in_string_ = character == '"';
    if (kSeparators.find(character) != std::string_view::npos) length_ = 0;
    if (is_minus_held_) translated_ += '-';
    is_minus_held_ = character == '-';
    if (is_minus_held_) return;
  }
  translated_ += character;
}

}  // namespace stepsim
