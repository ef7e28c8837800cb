// Text<DataType> reads and writes a data type in files and flags: "bf16". Names from other software
// are refused with a hint at the matching name here.

#pragma once

#include "sim/base/field_text.h"
#include "sim/chips/kernel.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<DataType> = kDataTypes;
template <>
inline constexpr std::size_t kValuesOf<AttentionLibrary> = kAttentionLibraries;

// Returns "; did you mean bf16?" for "bfloat16", "float8_e4m3", "half", ...
std::string hint_for_data_type(std::string_view text);

template <>
struct Text<DataType> {
  static std::string accepts();  // "fp32, bf16, fp16, fp8 or int8"
  static std::optional<DataType> read(std::string_view text);
  static std::string write(DataType type) { return std::string(name_of(type)); }
  static std::string hint(std::string_view text) { return hint_for_data_type(text); }
};

}  // namespace stepsim
