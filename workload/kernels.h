// Kernels by their shape: what each kind of launch computes and moves.
//
//   matmul      batch x [m,k] @ [k,n]: 2 m n k FLOPs; both inputs read once, the result written
//               once. The weight gradient adds to an fp32 accumulator instead of writing its
//               result: 4 bytes read and 4 written an element (gradient accumulation fused into
//               the matmul, as Megatron-LM does)
//   attention   fused (FlashAttention): scores never reach memory. Forward 2 x pairs x heads x
//               (qk_dim + v_dim) FLOPs, pairs = queries x keys, half of them if causal; keys and
//               values are read once for each of their own heads, not for each query head.
//               Backward 2.5 x the forward's FLOPs: five matmuls (one recomputes the scores)
//               where the forward has two (FlashAttention-2, arXiv 2307.08691, section 4.1)
//   elementwise as many values read and written, and as many FLOPs, an element as it is told
//
// Each byte counts once: what a kernel reads again it is taken to find in a cache.

#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/units.h"
#include "sim/chips/kernel.h"

namespace stepsim {

struct MatmulShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

// `name` must be a literal: kernels keep a view of it.
Kernel matmul(std::string_view name, DataType type, const MatmulShape& shape);
Kernel accumulating_matmul(std::string_view name, DataType type, const MatmulShape& shape);

struct AttentionShape {
  std::int64_t sequences = 1;
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t queries = 0;   // a sequence
  std::int64_t keys = 0;
  std::int64_t qk_dim = 0;  // of one head
  std::int64_t v_dim = 0;
  bool causal = true;
};

Kernel attention_forward(std::string_view name, DataType type, const AttentionShape& shape);
Kernel attention_backward(std::string_view name, DataType type, const AttentionShape& shape);

// One fp32 log-sum-exp a query and head: what the forward kernel leaves for the backward kernel
// beside its inputs and output.
Bytes log_sum_exp_size(const AttentionShape& shape);

struct ElementwiseShape {
  std::int64_t elements = 0;
  std::int64_t reads = 1;  // values of the kernel's type, an element
  std::int64_t writes = 1;
  std::int64_t flops = 0;        // an element
  std::int64_t accumulated = 0;  // fp32 values, in all, that are read, added to and written
};

Kernel elementwise(std::string_view name, DataType type, const ElementwiseShape& shape);

}  // namespace stepsim
