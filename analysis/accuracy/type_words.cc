#include "analysis/accuracy/type_words.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace stepsim {
namespace {

struct Format {
  std::string_view word;  // in small letters, without "-" and "_"
  int bits;
  std::optional<DataType> type;  // nullopt: not modelled
};

// A word of a text names the first format that it begins with, or ends with (amp_bf16).
constexpr std::array<Format, 20> kFormats = {{
    {"nvfp4", 4, std::nullopt},        {"mxfp4", 4, std::nullopt},
    {"fp4", 4, std::nullopt},          {"int4", 4, std::nullopt},
    {"mxfp6", 6, std::nullopt},        {"fp6", 6, std::nullopt},
    {"mxfp8", 8, std::nullopt},        {"fp8mx", 8, std::nullopt},
    {"fp8", 8, DataType::kFp8},        {"float8", 8, DataType::kFp8},
    {"e4m3", 8, DataType::kFp8},       {"int8", 8, DataType::kInt8},
    {"aqt", 8, DataType::kInt8},       {"bf16", 16, DataType::kBf16},
    {"bfloat16", 16, DataType::kBf16}, {"fp16", 16, DataType::kFp16},
    {"float16", 16, DataType::kFp16},  {"half", 16, DataType::kFp16},
    {"fp32", 32, DataType::kFp32},     {"float32", 32, DataType::kFp32},
}};

// Returns the text in small letters and without what stands in parentheses.
std::string outside_parentheses(std::string_view text) {
  std::string result;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (c == ')') depth = std::max(0, depth - 1);
  }
  return result;
}

// Returns the next word, without "-" and "_", and removes it from `text`.
std::string next_word(std::string_view& text) {
  std::string word;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else if (c != '-' && c != '_' && !word.empty()) {
      break;
    }
  }
  text.remove_prefix(at);
  return word;
}

const Format* format_of(std::string_view word) {
  const auto* const found = std::ranges::find_if(kFormats, [word](const Format& format) {
    return word.starts_with(format.word) || word.ends_with(format.word);
  });
  return found == kFormats.end() ? nullptr : found;
}

}  // namespace

TypeWords type_of_words(std::string_view text) {
  const std::string plain = outside_parentheses(text);
  const Format* narrowest = nullptr;
  for (std::string_view rest = plain; !rest.empty();) {
    const Format* const format = format_of(next_word(rest));
    if (format != nullptr && (narrowest == nullptr || format->bits < narrowest->bits)) {
      narrowest = format;
    }
  }
  const std::string quoted = "dtype \"" + std::string(text) + "\"";
  if (narrowest == nullptr)
    return {.type = std::nullopt, .problem = quoted + " names no known type"};
  if (!narrowest->type) {
    return {.type = std::nullopt,
            .problem = quoted + ": " + std::string(narrowest->word) + " is not modelled"};
  }
  return {.type = narrowest->type, .problem = {}};
}

}  // namespace stepsim
