#include "sim/base/shown_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::uint32_t kReplacement = 0xfffd;
constexpr std::uint32_t kFirstPaint = 0xfdd0;
constexpr std::uint32_t kEndOfPaint = kFirstPaint + kPaints;
constexpr std::array<std::string_view, kPaints> kCodes{"1", "2", "1;32", "1;31", "36"};

struct Character {
  std::uint32_t code = kReplacement;  // what it stands for
  std::size_t size = 1;               // bytes
  bool is_valid = false;
};

// Reads the character at the beginning of `text`, which is not empty: RFC 3629, so neither long
// forms nor surrogates.
Character first_character(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {.code = first, .size = 1, .is_valid = true};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return {};
  std::uint32_t code = first & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kLeast[size] || code > 0x10ffff || is_surrogate) return {};
  return {.code = code, .size = size, .is_valid = true};
}

constexpr bool is_hidden(std::uint32_t code) noexcept {
  const auto within = [code](std::uint32_t first, std::uint32_t last) {
    return code >= first && code <= last;
  };
  if (code < 0x20) return code != '\n' && code != '\t';
  if (code < 0x7f) return false;
  return within(0x7f, 0x9f) || code == 0x61c || within(0x200e, 0x200f) || within(0x2028, 0x202e) ||
         within(0x2066, 0x2069) || code == 0xfeff || within(0xfdd0, 0xfdef) ||
         within(0xfff9, 0xfffb) || (code & 0xfffeU) == 0xfffe;
}

constexpr bool is_printable_ascii(char letter) noexcept {
  return letter >= ' ' && letter <= '~';
}

std::string hexadecimal(std::uint32_t number, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; number >>= 4U) text[i] = "0123456789abcdef"[number & 0xfU];
  return text;
}

std::string escaped(std::uint32_t code) {
  if (code < 0x80) return "\\x" + hexadecimal(code, 2);
  return code > 0xffff ? "\\U" + hexadecimal(code, 8) : "\\u" + hexadecimal(code, 4);
}

// Of JSON, which writes what is above 16 bits as a pair of surrogates.
std::string escaped_in_json(std::uint32_t code) {
  if (code <= 0xffff) return "\\u" + hexadecimal(code, 4);
  code -= 0x10000;
  return "\\u" + hexadecimal(0xd800 + (code >> 10U), 4) + "\\u" +
         hexadecimal(0xdc00 + (code & 0x3ffU), 4);
}

std::string utf8_of(std::uint32_t mark) {
  return {static_cast<char>(0xe0U | mark >> 12U), static_cast<char>(0x80U | (mark >> 6U & 0x3fU)),
          static_cast<char>(0x80U | (mark & 0x3fU))};
}

// Returns the code of a terminal that a mark of paint() stands for; empty: it is no mark.
std::string terminal_code(std::uint32_t code) {
  if (code == kEndOfPaint) return "\x1b[0m";
  if (code < kFirstPaint || code > kEndOfPaint) return {};
  return "\x1b[" + std::string(kCodes[code - kFirstPaint]) + "m";
}

// Appends each hidden character as `escape` writes it, and all others as they are.
template <typename Escape>
std::string with_hidden(std::string_view text, Escape escape) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto rest = std::ranges::find_if_not(text, is_printable_ascii);
    const auto plain = static_cast<std::size_t>(rest - text.begin());
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Character next = first_character(text);
    if (!next.is_valid) {
      result += utf8_of(kReplacement);
    } else if (is_hidden(next.code)) {
      result += escape(next.code);
    } else {
      result += text.substr(0, next.size);
    }
    text.remove_prefix(next.size);
  }
  return result;
}

}  // namespace

std::string shown_text(std::string_view text, bool color) {
  return with_hidden(text, [color](std::uint32_t code) {
    const std::string painted = color ? terminal_code(code) : std::string();
    return painted.empty() ? escaped(code) : painted;
  });
}

bool is_plainly_shown(std::string_view text) noexcept {
  while (!text.empty()) {
    const Character next = first_character(text);
    if (!next.is_valid || is_hidden(next.code)) return false;
    text.remove_prefix(next.size);
  }
  return true;
}

std::string paint(std::string_view text, std::size_t code) {
  const auto mark = kFirstPaint + static_cast<std::uint32_t>(code);
  return utf8_of(mark) + std::string(text) + utf8_of(kEndOfPaint);
}

std::string json_shown(std::string json) {
  if (is_plainly_shown(json)) return json;
  return with_hidden(json, escaped_in_json);
}

std::string csv_cell(std::string_view text) {
  std::string cell = shown_text(text);
  constexpr std::string_view kFormulas = "=+-@\t";
  const bool may_be_formula = !text.empty() && (kFormulas.find(text[0]) != kFormulas.npos);
  if (may_be_formula && !number_in<double>(text)) cell.insert(0, "'");
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char letter : cell) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + '"';
}

}  // namespace stepsim
