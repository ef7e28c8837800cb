// type_of_words() reads the number format of a run's matmuls, in the words of a table's author:
//
//   amp_bf16 / MP DEFAULT                    bf16
//   fp8 hybrid (TE delayed scaling) + bf16   fp8
//   int8 (AQT) GEMMs + bf16                  int8
//   fp16/bf16 mixed                          fp16
//   not stated (fp8 or nvfp4)                nothing
//
// Of several formats the narrowest is that of the matmuls: the rest of a run stays wider. What
// stands in parentheses explains and does not count. A text that names no format, or one that the
// catalog's chips don't have, gives a reason to skip the row; it is never taken for bf16.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/chips/kernel.h"

namespace stepsim {

struct TypeWords {
  std::optional<DataType> type;
  std::string problem;  // if there is no type
};

TypeWords type_of_words(std::string_view text);

}  // namespace stepsim
