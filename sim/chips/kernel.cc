#include "sim/chips/kernel.h"

#include <array>
#include <cstddef>

namespace stepsim {
namespace {

struct NumberFormat {
  std::string_view name;
  std::int64_t bits;
  std::optional<BlockScales> scales{};
};

// mxfp8, mxfp4: OCP Microscaling Formats (MX) v1.0, 8-bit exponents (e8m0) as scales. nvfp4:
// NVIDIA, "Pretraining Large Language Models with NVFP4" (arXiv 2509.25149), e4m3 scales. int4:
// weights in groups of 128 with 16-bit scales, the default of GPTQ and AWQ (arXiv 2210.17323,
// 2306.00978). fp8_block: fp32 scales (DeepSeek-V3, arXiv 2412.19437, section 3.3.2).
constexpr std::array<NumberFormat, kDataTypes> kFormats{{
    {"fp32", 32},
    {"bf16", 16},
    {"fp16", 16},
    {"fp8", 8},
    {"int8", 8},
    {"mxfp8", 8, BlockScales{.block = 32, .bits = 8}},
    {"mxfp4", 4, BlockScales{.block = 32, .bits = 8}},
    {"nvfp4", 4, BlockScales{.block = 16, .bits = 8}},
    {"int4", 4, BlockScales{.block = 128, .bits = 16}},
    {"fp8_block", 8, BlockScales{.block = 128, .bits = 32, .rows = 128}},
}};

const NumberFormat& format_of(DataType type) {
  return kFormats[static_cast<std::size_t>(type)];
}

std::int64_t in_whole_bytes(std::int64_t bits) {
  return (bits + 7) / 8;
}

}  // namespace

Bytes size_of(DataType type) {
  return Bytes(in_whole_bytes(bits_of(type)));
}

std::int64_t bits_of(DataType type) {
  return format_of(type).bits;
}

std::string_view name_of(DataType type) {
  return format_of(type).name;
}

std::optional<BlockScales> block_scales_of(DataType type) {
  return format_of(type).scales;
}

Bytes bytes_of(std::int64_t values, DataType type) {
  const auto& [name, bits, scales] = format_of(type);
  if (!scales) return bits % 8 == 0 ? values * size_of(type) : Bytes(in_whole_bytes(values * bits));
  const std::int64_t blocks = (values + scales->block - 1) / scales->block;
  return Bytes(in_whole_bytes(values * bits) + in_whole_bytes(blocks * scales->bits));
}

Bytes weight_bytes_of(std::int64_t values, DataType type) {
  const auto& [name, bits, scales] = format_of(type);
  if (!scales || scales->rows == 1) return bytes_of(values, type);
  const std::int64_t each = scales->block * scales->rows;
  return Bytes(in_whole_bytes(values * bits) +
               in_whole_bytes((values + each - 1) / each * scales->bits));
}

double mean_bytes_of(DataType type) {
  const auto& [name, bits, scales] = format_of(type);
  const double shared =
      scales ? static_cast<double>(scales->bits) / static_cast<double>(scales->block) : 0;
  return (static_cast<double>(bits) + shared) / 8;
}

std::string_view name_of(ElementwiseKind kind) {
  constexpr std::array<std::string_view, kElementwiseKinds> kNames{"plain", "norm", "rope",
                                                                   "rounding"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(AttentionLibrary library) {
  constexpr std::array<std::string_view, kAttentionLibraries> kNames{"flash1", "flash2", "flash3",
                                                                     "flash4", "triton", "cudnn"};
  return kNames[static_cast<std::size_t>(library)];
}

}  // namespace stepsim
