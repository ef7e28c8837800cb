#include "analysis/accuracy/served_model_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <utility>

#include "analysis/accuracy/words.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool is_digit_of_name(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// Other names of models of the catalog, without what stands between their words. Distilled models:
// DeepSeek-R1 (arXiv 2501.12948), section 2.4. GLM-4.6 and MiniMax-M2 have the sizes of the
// releases that the catalog has.
constexpr auto kSame = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"deepseekv31", "deepseek-v3"},
     {"dsr1", "deepseek-r1"},
     {"dsv3", "deepseek-v3"},
     {"deepseekr1distillllama70b", "llama3.3-70b"},
     {"deepseekr1distillllama8b", "llama3.1-8b"},
     {"deepseekr1distillqwen32b", "qwen2.5-32b"},
     {"deepseekr1distillqwen14b", "qwen2.5-14b"},
     {"deepseekr1distillqwen7b", "qwen2.5-7b"},
     {"llama3170b", "llama3.1-70b"},
     {"glm46", "glm-4.5"},
     {"minimaxm2", "minimax-m2.5"},
     {"minimaxm21", "minimax-m2.5"},
     {"mistrallarge", "mistral-large-123b"},
     {"commandr", "command-r-35b"},
     {"commandrplus", "command-r-plus-104b"},
     {"qwen3coder480b", "qwen3-coder-480b-a35b"},
     {"qwen3235b", "qwen3-235b-a22b"},
     {"qwen330b", "qwen3-30b-a3b"},
     {"llama4maverick17b128e", "llama4-maverick"},
     {"llama4scout17b16e", "llama4-scout"}});

// Words behind a name that leave the architecture as it is.
constexpr auto kKeeps = std::to_array<std::string_view>(
    {"instruct", "chat",   "it",    "base",      "hf",        "fp8",    "fp4",     "fp16",
     "bf16",     "nvfp4",  "mxfp4", "int4",      "int8",      "awq",    "gptq",    "w4a16",
     "w8a8",     "fp8kv",  "block", "blockwise", "dynamic",   "exp",    "preview", "thinking",
     "turbo",    "latest", "sft",   "dpo",       "quantized", "static", "terminus"});

// A word is of letters and digits, and of points between digits.
std::vector<std::string_view> words_in_name(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && (is_in_word(name[end]) ||
                                 (name[end] == '.' && end > at && is_digit_of_name(name[end - 1]) &&
                                  end + 1 < name.size() && is_digit_of_name(name[end + 1])))) {
      ++end;
    }
    if (end > at) words.push_back(name.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return words;
}

// True of "instruct", "0528" and "2507" (a month or a day), "v0.3", "671b" and "a22b".
bool keeps_architecture(const std::string& word) {
  if (std::ranges::find(kKeeps, word) != kKeeps.end()) return true;
  std::string_view digits = word;
  const bool size = digits.ends_with('b');
  if (size) digits.remove_suffix(1);
  const bool version = digits.starts_with('v');
  if (version || (size && digits.starts_with('a'))) digits.remove_prefix(1);
  const bool number = !digits.empty() && std::ranges::all_of(digits, [](char c) {
    return is_digit_of_name(c) || c == '.';
  });
  return number && (size || version || digits.size() == 4);
}

const ModelSpec* model_called(const std::string& wanted, const std::vector<ModelSpec>& models) {
  const auto* const same =
      std::ranges::find(kSame, wanted, [](const auto& pair) { return pair.first; });
  const std::string known = same == kSame.end() ? wanted : letters_and_digits(same->second);
  const auto found = std::ranges::find(
      models, known, [](const ModelSpec& model) { return letters_and_digits(model.name); });
  return found == models.end() ? nullptr : &*found;
}

}  // namespace

const ModelSpec* served_model(std::string_view name, const std::vector<ModelSpec>& models) {
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  std::vector<std::string_view> words = words_in_name(name);
  while (!words.empty()) {
    std::string wanted;
    for (const std::string_view word : words) wanted += letters_and_digits(word);
    if (const ModelSpec* found = model_called(wanted, models)) return found;
    if (!keeps_architecture(in_small_letters(words.back()))) return nullptr;
    words.pop_back();
  }
  return nullptr;
}

}  // namespace stepsim
