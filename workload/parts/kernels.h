// These functions make kernels from shapes: how many FLOPs each kind of launch computes and how
// many bytes it moves.
//
//   matmul      batch x [m,k] @ [k,n]: 2 m n k FLOPs; both inputs read once, the result written
//               once. The weight gradient adds to an fp32 accumulator instead of writing its
//               result: 4 bytes read and 4 written an element (gradient accumulation fused into
//               the matmul, as Megatron-LM does)
//   grouped     one matmul for each of `groups` matrices (experts), over the rows that belong to
//               it (their tokens): 2 rows n k FLOPs, every matrix read once
//   attention   fused (FlashAttention): scores never reach memory. Forward 2 x pairs x heads x
//               (qk_dim + v_dim) FLOPs; keys and values are read once for each of their own heads,
//               not for each query head.
//               Backward 2.5 x the forward's FLOPs: five matmuls (one recomputes the scores)
//               where the forward has two (FlashAttention-2, arXiv 2307.08691, section 4.1)
//   decode      attention of a few queries a sequence over its cache. 2 x queries x keys x heads x
//               (qk_dim + v_dim) FLOPs; the cache is read once for each head of keys (latent: once
//               for all heads, and its first part is the values too)
//   elementwise as many values read and written, and as many FLOPs, an element as the shape says
//   rounding    an elementwise kernel with its own numbers of bytes: values become narrower, or
//               narrow ones are scaled along the other dimension
//
// Each byte counts once: a kernel that reads data again is assumed to find it in a cache.

#pragma once

#include <cstdint>
#include <optional>
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

// The types of a matmul's operands and of its result. FP8 operands have a wider result. `weights`:
// the second operand in memory, where it is narrower (4 or 8 bits under 16-bit inputs).
struct MatmulTypes {
  DataType operands = DataType::kBf16;
  DataType result = DataType::kBf16;
  std::optional<DataType> weights{};
};

// `name` must be a literal: kernels keep a view of it.
Kernel matmul(std::string_view name, MatmulTypes types, const MatmulShape& shape);
// The result is the accumulator, read and written.
Kernel accumulating_matmul(std::string_view name, MatmulTypes types, const MatmulShape& shape);

struct GroupedShape {
  std::int64_t groups = 1;
  std::int64_t rows = 0;  // rows of all groups; efficiency assumes equal shares
  std::int64_t n = 0;
  std::int64_t k = 0;
};

// Returns [rows, k] @ [k, n] of each group.
Kernel grouped_matmul(std::string_view name, MatmulTypes types, const GroupedShape& shape);
// Returns [n, rows] @ [rows, k] of each group, added to `groups` accumulators of [n, k].
Kernel accumulating_grouped_matmul(std::string_view name, MatmulTypes types,
                                   const GroupedShape& shape);

// Returns the pairs of a query and a key that attention scores in one sequence and head: s^2, s^2/2
// if causal, and s w - w^2/2 with a causal window of w < s keys (the area under min(i, w), like
// s^2/2). A window that is not causal has as many keys behind the query: twice that.
double attention_pairs(std::int64_t length, bool causal, std::int64_t window);

// Returns a kernel of attention whose queries and keys are parts of documents of `document` tokens
// (0: as it is): each is a sequence of its own to it, of as many tokens.
Kernel in_documents(Kernel kernel, std::int64_t document);

struct AttentionShape {
  std::int64_t sequences = 1;
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t queries = 0;   // per sequence
  std::int64_t keys = 0;
  std::int64_t qk_dim = 0;  // per head
  std::int64_t v_dim = 0;
  double pairs = 0;             // scored pairs of a query and a key, per sequence and head
  bool values_in_keys = false;  // values are the first features of the keys: read and kept once
};

// Returns the features that a key-value head has of each token.
inline std::int64_t key_and_value_width(const AttentionShape& shape) {
  return shape.qk_dim + (shape.values_in_keys ? 0 : shape.v_dim);
}

Kernel attention_forward(std::string_view name, DataType type, const AttentionShape& shape);
Kernel attention_backward(std::string_view name, DataType type, const AttentionShape& shape);

// Attention of sequences that generate. `keys` is the mean over the sequences: the time of unequal
// ones is taken for that of equal ones.
struct DecodeShape {
  std::int64_t sequences = 1;
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t queries = 1;   // per sequence: more than one with speculation
  std::int64_t keys = 0;      // in the cache, with those of the queries
  std::int64_t window = 0;    // only so many of them are read; 0: all
  std::int64_t qk_dim = 0;    // per head
  std::int64_t v_dim = 0;
};

// Attention over latents (multi-head latent attention with the up-projections absorbed into those
// of queries and outputs: DeepSeek-V2, arXiv 2405.04434, section 2.1.2).
struct LatentDecodeShape {
  std::int64_t sequences = 1;
  std::int64_t heads = 0;
  std::int64_t queries = 1;
  std::int64_t keys = 0;
  std::int64_t latent_dim = 512;  // values, and keys with rope_dim
  std::int64_t rope_dim = 64;
};

// Which kernel runs, and on what.
struct DecodeKernel {
  DataType type = DataType::kBf16;    // of queries and outputs
  DataType stored = DataType::kBf16;  // of the cache
  std::string_view library{};  // of the chip's serving kernels; a literal or as long-lived; "": the
                               // chip's first
  bool repeated = false;       // on the same cache before, as benchmarks do
  bool beside_prompts = false;  // the pass computes prompts, too
};

// REQUIRES: every size at least 1 but window; kv_heads divides heads.
Kernel attention_decode(std::string_view name, const DecodeKernel& kernel,
                        const DecodeShape& shape);
Kernel latent_decode(std::string_view name, const DecodeKernel& kernel,
                     const LatentDecodeShape& shape);

// The experts of a layer in one call of a serving library, for tokens that choose among all.
struct ExpertsShape {
  std::int64_t tokens = 0;   // that choose, of all members of the experts' group
  std::int64_t experts = 0;  // on this chip
  std::int64_t all = 0;
  std::int64_t chosen = 0;  // by each token, of all
  std::int64_t hidden = 0;
  std::int64_t inter = 0;  // of an expert, this chip's part
  bool gated = true;
  double spread = 1;  // the most popular expert over the least: expert_layer.h
};

// `type`: of operands; `weights`: unset if the same. FLOPs and bytes are means over random choices.
Kernel experts_kernel(std::string_view name, DataType type, std::optional<DataType> weights,
                      const ExpertsShape& shape);

// Returns the bytes of one fp32 log-sum-exp per query and head. The forward kernel leaves it for
// the backward kernel, besides its inputs and output.
Bytes log_sum_exp_size(const AttentionShape& shape);

struct ElementwiseShape {
  std::int64_t elements = 0;
  std::int64_t reads = 1;  // values of the kernel's type, per element
  std::int64_t writes = 1;
  std::int64_t flops = 0;        // per element
  std::int64_t accumulated = 0;  // total fp32 values that are read, added to and written
  ElementwiseKind kind = ElementwiseKind::kPlain;
};

Kernel elementwise(std::string_view name, DataType type, const ElementwiseShape& shape);

// Returns a kernel that finds the largest value of each block and scales all values by it: two
// FLOPs per value.
Kernel rounding(std::string_view name, DataType type, std::int64_t values, Bytes read,
                Bytes written);

}  // namespace stepsim
