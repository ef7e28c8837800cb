// The kernels of a state that runs along the tokens, taken a chunk of C tokens at a time: matmuls
// within the chunks, which run in parallel, and a recurrence between them, which does not.
//
// For each head, with keys of N and values of P features, a chunk takes (2 m n k FLOPs a matmul)
//
//   mamba2      state of the chunk k^T v      N C P    in parallel over chunks and heads
//               states passed on              N P      memory: each is read and written once
//               scores q k^T                  C C N    once for each group
//               result scores v + q S         C P (C + N)
//   lightning   states passed on, with k^T v  N C P    one chunk after the other
//               scores and result             C C N + C P (C + N)
//   delta       scores k k^T                  C C N
//               their triangular inverse A    C^3 / 6
//               w = A k, u = A v              C C (N + P)
//               states passed on              2 N C P  one chunk after the other: u - w S, k^T (..)
//               scores and result             C C N + C P (C + N)
//
// That is 2 C (N G / H + P) + 4 N P FLOPs a token and head for mamba2 and 2 C (3 N + 2 P) + C^2 / 3
// + 6 N P for delta. Sources: Dao and Gu, arXiv 2405.21060, section 6 (mamba2); Yang et al., arXiv
// 2412.06464, section 3.3, with the kernels of flash-linear-attention (delta, kimi_delta); Qin et
// al., arXiv 2401.04658 (lightning).
//
// A recurrence runs on as many units as there are sequences, heads and blocks of 64 value features:
// few heads on a chip leave units idle, however long the sequence is (Kernel::sequential).
//
// The backward makes states, inverse, w and u again, and has two matmuls where the forward has one.
// Decays cost no matmul; they are read with k. Not modelled: smaller chunks within a chunk, in
// which kernels of kimi_delta keep decays in range, the products of the gradient through the
// inverse (some 5 % of a delta rule's backward), the pass over gradients of mamba2's states.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/chips/kernel.h"
#include "workload/model/state_spec.h"

namespace stepsim {

// The part of a state layer that one chip computes.
struct ScanShape {
  StateKind kind = StateKind::kMamba2;
  std::int64_t sequences = 1;
  std::int64_t tokens = 0;  // of each sequence, on this chip
  std::int64_t heads = 0;
  std::int64_t groups = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t chunk = 0;

  std::int64_t all_tokens() const { return sequences * tokens; }
  std::int64_t chunks() const { return sequences * ((tokens + chunk - 1) / chunk); }
  std::int64_t keys() const { return all_tokens() * groups * key_dim; }
  std::int64_t values() const { return all_tokens() * heads * value_dim; }
  std::int64_t states() const { return chunks() * heads * key_dim * value_dim; }
};

struct ScanKernels {
  std::vector<Kernel> forward{};
  std::vector<Kernel> backward{};
};

// REQUIRES: kind is not mamba; all sizes are at least 1.
ScanKernels chunked_scan(DataType type, const ScanShape& shape);

// Returns the FLOPs of the recurrence itself, a token after the other, in the forward: what model
// FLOPs count, whatever chunk the kernels take. mamba2 and mamba 7 a value of the state
// (Megatron-LM counts its Mamba layers so), delta 8 (four products with the state), lightning 4
// (two).
double recurrence_flops(const StateSpec& state, std::int64_t tokens);

}  // namespace stepsim
