#include "sim/chips/data_type_text.h"

#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

struct Alias {
  std::string_view part;  // a part of the foreign name, in small letters
  DataType type;
};
// The first alias that occurs in a name counts.
constexpr Alias kAliases[] = {
    {"bfloat16", DataType::kBf16}, {"bf16", DataType::kBf16},  {"float32", DataType::kFp32},
    {"float16", DataType::kFp16},  {"float8", DataType::kFp8}, {"e4m3", DataType::kFp8},
    {"e5m2", DataType::kFp8},      {"half", DataType::kFp16},  {"f32", DataType::kFp32},
    {"f16", DataType::kFp16},      {"f8", DataType::kFp8},     {"i8", DataType::kInt8},
    {"float", DataType::kFp32}};

std::vector<std::string> names_of_types() {
  std::vector<std::string> names;
  for (int i = 0; i < kDataTypes; ++i) names.emplace_back(name_of(static_cast<DataType>(i)));
  return names;
}

}  // namespace

std::string hint_for_data_type(std::string_view text) {
  const std::string wanted = in_small_letters(text);
  for (const Alias& alias : kAliases) {
    if (wanted.find(alias.part) == std::string::npos) continue;
    return "; did you mean " + std::string(name_of(alias.type)) + "?";
  }
  return hint_for_name(text, names_of_types());
}

std::string Text<DataType>::accepts() {
  return either_of(names_of_types());
}

std::optional<DataType> Text<DataType>::read(std::string_view text) {
  for (int i = 0; i < kDataTypes; ++i) {
    if (name_of(static_cast<DataType>(i)) == text) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

}  // namespace stepsim
