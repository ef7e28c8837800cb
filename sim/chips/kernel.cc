#include "sim/chips/kernel.h"

#include <array>
#include <cstddef>

namespace stepsim {
namespace {

struct DataTypeFacts {
  std::int64_t bytes;
  std::string_view name;
};

constexpr std::array<DataTypeFacts, kDataTypes> kFacts{
    {{4, "fp32"}, {2, "bf16"}, {2, "fp16"}, {1, "fp8"}, {1, "int8"}}};

}  // namespace

Bytes size_of(DataType type) {
  return Bytes(kFacts[static_cast<std::size_t>(type)].bytes);
}

std::string_view name_of(DataType type) {
  return kFacts[static_cast<std::size_t>(type)].name;
}

std::string_view name_of(ElementwiseKind kind) {
  constexpr std::array<std::string_view, kElementwiseKinds> kNames{"plain", "norm", "rope",
                                                                   "rounding"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace stepsim
