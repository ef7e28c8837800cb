// type_of_words() reads the number format of a run's matmuls, in the words of a table's author:
//
//   amp_bf16 / MP DEFAULT                    bf16
//   fp8 hybrid (TE delayed scaling) + bf16   fp8
//   float8 rowwise                           fp8, a scale a row
//   fp8 (blockwise scaling, 1x128)           fp8, a scale for 128 values
//   FP8-MX                                   mxfp8
//   nvfp4 GEMMs (TE)                         nvfp4
//   int8 (AQT) GEMMs + bf16                  int8
//   fp16/bf16 mixed                          fp16
//   not stated (fp8 or nvfp4)                nothing
//
// Of several formats the narrowest is that of the matmuls: the rest of a run stays wider. A format
// in parentheses explains and does not count; how values are scaled counts there, too. A text that
// names no format, or one that is not modelled, gives a reason to skip the row; it is never taken
// for bf16. Whether the chip computes in the format is not asked here.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/chips/kernel.h"

namespace stepsim {

struct TypeWords {
  std::optional<DataType> type;
  std::optional<std::int64_t> scale_block{};  // as in ParallelPlan
  bool scale_rows = false;
  std::string problem;  // if there is no type
};

TypeWords type_of_words(std::string_view text);

// Returns whether a text says that weights, gradients and the optimizer's moments are all in 16
// bits: "pure bf16", Lightning's "bf16-true", "mixed_precision no" of a model that was loaded so.
bool is_pure(std::string_view text);

// Returns whether a text says that no format is known: "not stated", "not stated (their script)".
bool leaves_type_open(std::string_view text);

}  // namespace stepsim
