#include "workload/kernels.h"

#include <cassert>

namespace stepsim {
namespace {

double pairs(const AttentionShape& shape) {
  const double all = static_cast<double>(shape.queries) * static_cast<double>(shape.keys);
  return shape.causal ? all / 2 : all;
}

// FLOPs, and the shape that the chip model looks at.
Kernel attention(std::string_view name, DataType type, const AttentionShape& shape) {
  assert(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0);
  Kernel kernel{.name = name, .type = type};
  kernel.flops = Flops(2 * pairs(shape) * static_cast<double>(shape.sequences * shape.heads) *
                       static_cast<double>(shape.qk_dim + shape.v_dim));
  kernel.batch = shape.sequences * shape.heads;
  kernel.m = shape.queries;
  kernel.n = shape.keys;
  kernel.k = shape.qk_dim;
  return kernel;
}

struct AttentionSizes {
  Bytes q, k, v, output;
};

AttentionSizes sizes(DataType type, const AttentionShape& shape) {
  const Bytes element = size_of(type);
  const std::int64_t queries = shape.sequences * shape.queries * shape.heads;
  const std::int64_t keys = shape.sequences * shape.keys * shape.kv_heads;
  return {.q = queries * shape.qk_dim * element,
          .k = keys * shape.qk_dim * element,
          .v = keys * shape.v_dim * element,
          .output = queries * shape.v_dim * element};
}

}  // namespace

Kernel matmul(std::string_view name, DataType type, const MatmulShape& shape) {
  const auto& [batch, m, n, k] = shape;
  return {.name = name,
          .kind = KernelKind::kMatmul,
          .type = type,
          .flops = Flops(2 * static_cast<double>(batch) * static_cast<double>(m) *
                         static_cast<double>(n) * static_cast<double>(k)),
          .read = batch * (m * k + k * n) * size_of(type),
          .written = batch * m * n * size_of(type),
          .batch = batch,
          .m = m,
          .n = n,
          .k = k};
}

Kernel accumulating_matmul(std::string_view name, DataType type, const MatmulShape& shape) {
  Kernel kernel = matmul(name, type, shape);
  const Bytes accumulator = shape.batch * shape.m * shape.n * size_of(DataType::kFp32);
  kernel.read += accumulator;
  kernel.written = accumulator;
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
  kernel.read = q + k + v + output + output + log_sum_exp_size(shape);  // and output's gradient
  kernel.written = q + k + v;
  return kernel;
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
          .read = shape.elements * shape.reads * size_of(type) + accumulated,
          .written = shape.elements * shape.writes * size_of(type) + accumulated};
}

}  // namespace stepsim
