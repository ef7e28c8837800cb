// Kernel is one launch on a chip: what it computes (FLOPs) and what it moves to and from the
// chip's memory (bytes), with the shape that decides how efficiently.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/units.h"

namespace stepsim {

// A number format. To add one, name it here and give it a row of the table in kernel.cc; plans,
// chips, tables of measurements and help follow.
enum class DataType : std::uint8_t {
  kFp32,
  kBf16,
  kFp16,
  kFp8,
  kInt8,
  kMxfp8,
  kMxfp4,
  kNvfp4,
  kInt4,
  kFp8Block
};
inline constexpr int kDataTypes = 10;

// Scales of a format that has its own: one for each `block` values along the inner dimension.
struct BlockScales {
  std::int64_t block = 1;
  std::int64_t bits = 0;  // of each scale
  std::int64_t rows = 1;  // of a matrix of weights that share one
};

Bytes size_of(DataType type);             // of one value by itself: at least a byte, without scales
std::int64_t bits_of(DataType type);      // of one value
std::string_view name_of(DataType type);  // "bf16"
// Returns nullopt if the format has no scales. Plans may give fp8 some (NarrowTypes::scale_block).
std::optional<BlockScales> block_scales_of(DataType type);
// Returns the size of many values with the format's own scales, rounded up to whole bytes.
Bytes bytes_of(std::int64_t values, DataType type);
double mean_bytes_of(DataType type);  // of one of many values: nvfp4 0.5625
// The same of weights, whose scales stand for blocks of several rows in some formats.
Bytes weight_bytes_of(std::int64_t values, DataType type);

enum class KernelKind : std::uint8_t {
  kMatmul,             // batch x [m,k] @ [k,n]
  kAttentionForward,   // fused softmax(q k^T) v
  kAttentionBackward,  // fused, recomputes the scores
  kElementwise,        // norms, activations, residual additions, casts, optimizer updates
  kAttentionDecode,    // few queries a sequence over its cache of keys and values
  kLatentDecode,       // the same over a cache of latents, which are keys and values of all heads
  kExperts,            // the experts of a layer, as a serving library runs them (expert_layer.h)
};

// Kinds of elementwise kernels. The access pattern of a kind decides how much of the memory's
// bandwidth it reaches.
enum class ElementwiseKind : std::uint8_t {
  kPlain,     // reads and writes each value once
  kNorm,      // reads a whole row before it writes any of it
  kRope,      // rotates some features of each head
  kRounding,  // finds each block's largest value, then rounds the block to one byte a value
};
inline constexpr std::size_t kElementwiseKinds = 4;
std::string_view name_of(ElementwiseKind kind);  // "norm"

// Libraries of fused attention kernels for training, of which some run on several generations of
// chips.
enum class AttentionLibrary : std::uint8_t {
  kFlash1,  // FlashAttention (Dao et al., arXiv 2205.14135)
  kFlash2,  // FlashAttention-2 (Dao, arXiv 2307.08691), PyTorch's own, too
  kFlash3,  // FlashAttention-3 (Shah et al., arXiv 2407.08608), for Hopper
  kFlash4,  // FlashAttention-4, for Blackwell
  kTriton,  // FlashAttention in Triton, as of 2023
  kCudnn,
};
inline constexpr std::size_t kAttentionLibraries = 6;
std::string_view name_of(AttentionLibrary library);  // "flash2"

// What a kernel is for, where somebody asks.
enum class KernelUse : std::uint8_t {
  kOther,
  kFindScale,      // the largest value of an operand, before it is rounded
  kRoundInput,     // of a matmul
  kRoundGradient,  // of a matmul's result
  kRoundWeight,
  kWiden,  // makes wide again what was kept narrow
  kChooseExperts,
  kChoiceGradient,  // of the weights that a token has for its experts
};

// Kernels are compared and deduplicated by value.
struct Kernel {
  std::string_view name;  // a string literal: "qkv_projection"
  KernelKind kind = KernelKind::kElementwise;
  KernelUse use = KernelUse::kOther;
  DataType type = DataType::kBf16;  // type in which the arithmetic units compute
  Flops flops{};
  Bytes read{};
  Bytes written{};
  // kMatmul: the shape. Attention: batch = sequences x heads, m = query length, n = key length,
  // k = head dimension. Decode: batch = sequences x heads of keys, m = queries that share them,
  // n = keys of a sequence, k = width of a key. Experts: batch = those on the chip, m = tokens that
  // choose among all, n = width of an expert, k = width of a token. Otherwise 0.
  std::int64_t batch = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool accumulates = false;  // kMatmul: adds its result to the values in memory
  bool sequential = false;   // kMatmul: k is a chain of products, which can't be split
  // Attention: each query reads keys of a list of its own, of n on average.
  bool gathered = false;
  ElementwiseKind elementwise = ElementwiseKind::kPlain;  // kElementwise
  // Launches that it costs the host. 0: it belongs to a graph that an earlier kernel has launched.
  std::uint16_t launches = 1;
  std::uint16_t choices = 0;  // Experts: how many of all experts each token chooses
  float spread = 1;           // Experts: the most popular one over the least (expert_layer.h)
  bool gated = false;         // Experts: three matrices each, not two
  // Decode: the type of the cache. Experts: that of the weights. kMatmul: that of the second
  // operand, where the kernel widens it as it reads (weights of 8 or 4 bits under 16-bit inputs).
  // Unset: `type`.
  std::optional<DataType> stored{};
  std::string_view library{};   // Decode: whose kernel (DecodeEfficiency::library); "": the first
  bool repeated = false;        // Decode: the same data was read just before, as benchmarks do
  bool beside_prompts = false;  // Decode: in a call that computes prompts, too
  // The time that a trace has of it, which replaces that of the chip's model. Communication beside
  // it does not slow it down: it did so in the trace.
  std::optional<Duration> recorded{};

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

}  // namespace stepsim
