#include "workload/parts/kernels.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/chips/expert_layer.h"

namespace stepsim {
namespace {

// There are rarely as many groups as rows, but a group without a row does nothing.
std::int64_t rows_of_a_group(const GroupedShape& shape) {
  return (shape.rows + shape.groups - 1) / shape.groups;
}

Flops flops_of(const GroupedShape& shape) {
  return Flops(2 * static_cast<double>(shape.rows) * static_cast<double>(shape.n) *
               static_cast<double>(shape.k));
}

// Sets FLOPs and the shape that the chip model uses.
Kernel attention(std::string_view name, DataType type, const AttentionShape& shape) {
  assert(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0);
  Kernel kernel{.name = name, .type = type};
  kernel.flops = Flops(2 * shape.pairs * static_cast<double>(shape.sequences * shape.heads) *
                       static_cast<double>(shape.qk_dim + shape.v_dim));
  kernel.batch = shape.sequences * shape.heads;
  kernel.m = shape.queries;
  kernel.n = shape.keys;
  kernel.k = shape.qk_dim;
  return kernel;
}

struct OperandBytes {
  Bytes q, k, v, output;
};

OperandBytes sizes(DataType type, const AttentionShape& shape) {
  const Bytes element = size_of(type);
  const std::int64_t queries = shape.sequences * shape.queries * shape.heads;
  const std::int64_t keys = shape.sequences * shape.keys * shape.kv_heads;
  return {.q = queries * shape.qk_dim * element,
          .k = keys * shape.qk_dim * element,
          .v = (key_and_value_width(shape) - shape.qk_dim) * keys * element,
          .output = queries * shape.v_dim * element};
}

// Returns the kernel without what depends on how heads share keys. `rows`: queries of all heads.
Kernel decode_of(std::string_view name, const DecodeKernel& kernel, std::int64_t rows,
                 std::int64_t keys, std::int64_t qk_dim, std::int64_t v_dim) {
  return {.name = name,
          .type = kernel.type,
          .flops = Flops(2 * static_cast<double>(rows) * static_cast<double>(keys) *
                         static_cast<double>(qk_dim + v_dim)),
          .read = bytes_of(rows * qk_dim, kernel.type),
          .written = bytes_of(rows * v_dim, kernel.type),
          .n = keys,
          .k = qk_dim,
          .stored = kernel.stored,
          .library = kernel.library,
          .repeated = kernel.repeated,
          .beside_prompts = kernel.beside_prompts};
}

}  // namespace

Kernel matmul(std::string_view name, MatmulTypes types, const MatmulShape& shape) {
  const auto& [batch, m, n, k] = shape;
  return {.name = name,
          .kind = KernelKind::kMatmul,
          .type = types.operands,
          .flops = Flops(2 * static_cast<double>(batch) * static_cast<double>(m) *
                         static_cast<double>(n) * static_cast<double>(k)),
          .read = types.weights ? bytes_of(batch * m * k, types.operands) +
                                      bytes_of(batch * k * n, *types.weights)
                                : bytes_of(batch * (m * k + k * n), types.operands),
          .written = bytes_of(batch * m * n, types.result),
          .batch = batch,
          .m = m,
          .n = n,
          .k = k,
          .stored = types.weights};
}

Kernel accumulating_matmul(std::string_view name, MatmulTypes types, const MatmulShape& shape) {
  Kernel kernel = matmul(name, types, shape);
  kernel.read += kernel.written;
  kernel.accumulates = true;
  return kernel;
}

Kernel grouped_matmul(std::string_view name, MatmulTypes types, const GroupedShape& shape) {
  const auto& [groups, rows, n, k] = shape;
  return {.name = name,
          .kind = KernelKind::kMatmul,
          .type = types.operands,
          .flops = flops_of(shape),
          .read = bytes_of(rows * k + groups * k * n, types.operands),
          .written = bytes_of(rows * n, types.result),
          .batch = groups,
          .m = rows_of_a_group(shape),
          .n = n,
          .k = k};
}

Kernel accumulating_grouped_matmul(std::string_view name, MatmulTypes types,
                                   const GroupedShape& shape) {
  const auto& [groups, rows, n, k] = shape;
  const Bytes accumulators = groups * n * k * size_of(types.result);
  return {.name = name,
          .kind = KernelKind::kMatmul,
          .type = types.operands,
          .flops = flops_of(shape),
          .read = bytes_of(rows * (n + k), types.operands) + accumulators,
          .written = accumulators,
          .batch = groups,
          .m = n,
          .n = k,
          .k = rows_of_a_group(shape),
          .accumulates = true};
}

Kernel experts_kernel(std::string_view name, DataType type, std::optional<DataType> weights,
                      const ExpertsShape& shape) {
  const auto tokens = static_cast<double>(shape.tokens);
  const auto experts = static_cast<double>(shape.experts);
  const double chance = static_cast<double>(shape.chosen) / static_cast<double>(shape.all);
  const double rows = tokens * chance * experts;
  const double active = active_experts(shape.tokens, shape.experts, chance, shape.spread);
  const std::int64_t matrix = shape.hidden * shape.inter;
  const std::int64_t matrices = shape.gated ? 3 : 2;
  const std::int64_t in_use = std::max<std::int64_t>(1, std::llround(active));
  return {.name = name,
          .kind = KernelKind::kExperts,
          .type = type,
          .flops = Flops(2 * rows * static_cast<double>(matrices * matrix)),
          .read = bytes_of(in_use * matrices * matrix, weights.value_or(type)) +
                  bytes_of(shape.tokens * shape.hidden, type),
          .written = bytes_of(shape.tokens * shape.hidden, DataType::kBf16),
          .batch = shape.experts,
          .m = shape.tokens,
          .n = shape.inter,
          .k = shape.hidden,
          .choices = static_cast<std::uint16_t>(shape.chosen),
          .spread = static_cast<float>(shape.spread),
          .gated = shape.gated,
          .stored = weights};
}

double attention_pairs(std::int64_t length, bool causal, std::int64_t window) {
  const auto s = static_cast<double>(length);
  const auto w = static_cast<double>(window);
  const double half = window > 0 && window < length ? s * w - w * w / 2 : s * s / 2;
  return causal ? half : 2 * half;
}

Kernel in_documents(Kernel kernel, std::int64_t document) {
  if (document == 0) return kernel;
  const std::int64_t queries = std::min(kernel.m, document);
  kernel.batch *= std::max<std::int64_t>(1, (kernel.m + queries / 2) / queries);
  kernel.m = queries;
  kernel.n = std::min(kernel.n, document);
  return kernel;
}

Kernel attention_forward(std::string_view name, DataType type, const AttentionShape& shape) {
  Kernel kernel = attention(name, type, shape);
  const auto [q, k, v, output] = sizes(type, shape);
  kernel.kind = KernelKind::kAttentionForward;
  kernel.read = q + k + v;
  kernel.written = output + log_sum_exp_size(shape);
  return kernel;
}

Kernel attention_backward(std::string_view name, DataType type, const AttentionShape& shape) {
  Kernel kernel = attention(name, type, shape);
  const auto [q, k, v, output] = sizes(type, shape);
  kernel.kind = KernelKind::kAttentionBackward;
  kernel.flops = 2.5 * kernel.flops;
  kernel.read = q + k + v + output + output + log_sum_exp_size(shape);  // and the output's gradient
  kernel.written = q + k + v;
  return kernel;
}

Kernel attention_decode(std::string_view name, const DecodeKernel& kernel,
                        const DecodeShape& shape) {
  assert(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0);
  const std::int64_t keys = shape.window > 0 ? std::min(shape.window, shape.keys) : shape.keys;
  const std::int64_t rows = shape.sequences * shape.queries * shape.heads;
  Kernel decode = decode_of(name, kernel, rows, keys, shape.qk_dim, shape.v_dim);
  decode.kind = KernelKind::kAttentionDecode;
  decode.batch = shape.sequences * shape.kv_heads;
  decode.m = shape.queries * (shape.heads / shape.kv_heads);
  decode.read += bytes_of(decode.batch * keys * (shape.qk_dim + shape.v_dim), kernel.stored);
  return decode;
}

Kernel latent_decode(std::string_view name, const DecodeKernel& kernel,
                     const LatentDecodeShape& shape) {
  const std::int64_t width = shape.latent_dim + shape.rope_dim;
  const std::int64_t rows = shape.sequences * shape.queries * shape.heads;
  Kernel decode = decode_of(name, kernel, rows, shape.keys, width, shape.latent_dim);
  decode.kind = KernelKind::kLatentDecode;
  decode.batch = shape.sequences;
  decode.m = shape.queries * shape.heads;
  decode.read += bytes_of(shape.sequences * shape.keys * width, kernel.stored);
  return decode;
}

Bytes log_sum_exp_size(const AttentionShape& shape) {
  return shape.sequences * shape.heads * shape.queries * size_of(DataType::kFp32);
}

Kernel elementwise(std::string_view name, DataType type, const ElementwiseShape& shape) {
  const Bytes accumulated = shape.accumulated * size_of(DataType::kFp32);
  return {.name = name,
          .kind = KernelKind::kElementwise,
          .type = type,
          .flops = Flops(static_cast<double>(shape.elements) * static_cast<double>(shape.flops) +
                         static_cast<double>(shape.accumulated)),
          .read = bytes_of(shape.elements * shape.reads, type) + accumulated,
          .written = bytes_of(shape.elements * shape.writes, type) + accumulated,
          .elementwise = shape.kind};
}

Kernel rounding(std::string_view name, DataType type, std::int64_t values, Bytes read,
                Bytes written) {
  return {.name = name,
          .kind = KernelKind::kElementwise,
          .type = type,
          .flops = Flops(2 * static_cast<double>(values)),
          .read = read,
          .written = written,
          .elementwise = ElementwiseKind::kRounding};
}

}  // namespace stepsim
