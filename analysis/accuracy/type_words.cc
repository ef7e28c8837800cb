#include "analysis/accuracy/type_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

struct Format {
  std::string_view word;  // in small letters, without "-" and "_"
  std::int64_t bits;
  std::optional<DataType> type;  // nullopt: not modelled
};

// Other words for the formats that stepsim has, and formats that it doesn't have.
constexpr std::array<Format, 14> kOtherWords = {{
    {"mxfp6", 6, std::nullopt},
    {"fp6", 6, std::nullopt},
    {"fp8mx", 8, DataType::kMxfp8},
    {"float8", 8, DataType::kFp8},
    {"e4m3", 8, DataType::kFp8},
    {"aqt", 8, DataType::kInt8},
    {"bfloat16", 16, DataType::kBf16},
    {"float16", 16, DataType::kFp16},
    {"half", 16, DataType::kFp16},
    {"float32", 32, DataType::kFp32},
    // 16 bits of either kind, which are alike in time and size.
    {"amp", 16, DataType::kFp16},
    {"w16a16", 16, DataType::kFp16},
    {"16bit", 16, DataType::kFp16},
    {"mixed", 16, DataType::kFp16},
}};
// Looked for last: mxfp4 and nvfp4 end with it. Which of them is meant is not known.
constexpr Format kSomeFp4 = {"fp4", 4, std::nullopt};

// The longer of two words stands first, as mxfp8 before fp8.
std::vector<Format> all_formats() {
  std::vector<Format> formats(kOtherWords.begin(), kOtherWords.end());
  for (int i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    formats.push_back({name_of(type), bits_of(type), type});
  }
  std::ranges::stable_sort(formats, std::ranges::greater{},
                           [](const Format& format) { return format.word.size(); });
  formats.push_back(kSomeFp4);
  return formats;
}

std::string outside_parentheses(std::string_view text) {
  std::string result;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) result += c;
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

// A word of a text names the first format that it begins with, or ends with (amp_bf16).
const Format* format_of(std::string_view word) {
  static const std::vector<Format> kFormats = all_formats();
  const auto found = std::ranges::find_if(kFormats, [word](const Format& format) {
    return word.starts_with(format.word) || word.ends_with(format.word);
  });
  return found == kFormats.end() ? nullptr : &*found;
}

const Format* narrowest_format(std::string_view text) {
  const Format* narrowest = nullptr;
  while (!text.empty()) {
    const Format* const format = format_of(next_word(text));
    if (format == nullptr) continue;
    const bool says_more =
        narrowest != nullptr && format->bits == narrowest->bits && format->type && !narrowest->type;
    if (narrowest == nullptr || format->bits < narrowest->bits || says_more) {
      narrowest = format;
    }
  }
  return narrowest;
}

// DeepSeek-V3 (arXiv 2412.19437, section 3.3.2), and with it Transformer Engine and DeepGEMM.
constexpr std::int64_t kUsualBlock = 128;

// Reads how values are scaled that have no scales of their own.
void read_scales(std::string_view text, TypeWords& words) {
  if (size_of(*words.type) != Bytes(1) || block_scales_of(*words.type)) return;
  const auto says = [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  };
  if (says("block") || says("1x128")) {
    words.scale_block = kUsualBlock;
  } else if (says("rowwise") || says("row-wise") || says("by row") || says("per row")) {
    words.scale_rows = true;
  }
}

// Returns the only format that a text names; nullptr if it names none or several.
const Format* only_format(std::string_view text) {
  const Format* only = nullptr;
  while (!text.empty()) {
    const Format* const format = format_of(next_word(text));
    if (format == nullptr || format->word == kSomeFp4.word) continue;
    if (only != nullptr && only->type != format->type) return nullptr;
    only = format;
  }
  return only;
}

// Notes in parentheses count where nothing else names a format ("not stated (default bfloat16)"),
// and where they say which fp4 is meant ("fp4 (recipe nvfp4)").
const Format* format_of_text(const std::string& small) {
  const Format* const outside = narrowest_format(outside_parentheses(small));
  if (outside == nullptr) return only_format(small);
  const Format* const anywhere = narrowest_format(small);
  const bool says_which = !outside->type && outside->word == kSomeFp4.word && anywhere->type;
  return says_which ? anywhere : outside;
}

}  // namespace

bool is_pure(std::string_view text) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"bf16-true", "bf16_true", "pure bf16", "pure fp16", "full bf16", "all in bf16",
       "mixed_precision no", "mixed_precision: no", "weights, adam", "weights loaded in b",
       "training.dtype=bfloat16", "training.dtype bfloat16"});
  const std::string small = in_small_letters(text);
  const auto says = [&small](std::string_view words) { return small.find(words) != small.npos; };
  if (says("fp32") || says("float32") || says("master") || says("not full")) return false;
  return std::ranges::any_of(kWords, says);
}

bool leaves_type_open(std::string_view text) {
  const std::string small = in_small_letters(text);
  return small.starts_with("not stated") && narrowest_format(small) == nullptr;
}

TypeWords type_of_words(std::string_view text) {
  const std::string small = in_small_letters(text);
  const Format* const narrowest = format_of_text(small);
  const std::string quoted = "dtype \"" + std::string(text) + "\"";
  if (narrowest == nullptr)
    return {.type = std::nullopt, .problem = quoted + " names no known type"};
  if (!narrowest->type) {
    return {.type = std::nullopt,
            .problem = quoted + ": " + std::string(narrowest->word) + " is not modelled"};
  }
  TypeWords words{.type = narrowest->type, .problem = {}};
  read_scales(small, words);
  return words;
}

}  // namespace stepsim
