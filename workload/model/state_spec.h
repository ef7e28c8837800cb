// StateSpec is the shape of layers that mix tokens through a state in place of attention: each head
// carries a matrix of key_dim x value_dim along the sequence. It takes the same memory whatever the
// length, and the work grows linearly with the tokens.
//
//   kind         a head's state S at each token                             published in
//   mamba2       S = a S + k v^T, a number a head and token                 arXiv 2405.21060
//   gated_delta  S = a (S - b k (k^T S)) + b k v^T                          arXiv 2412.06464
//   kimi_delta   the same with a number for each row of S                   arXiv 2510.26692
//   lightning    S = a S + k v^T, a fixed for each head                     arXiv 2401.04658
//   mamba        each feature is a head with a row of key_dim; a for each   arXiv 2312.00752
//   short        no state but that of the convolution, between two gates    LFM2
//
// and the result is S^T q. `groups` heads of k and q serve all `heads`, as with grouped queries.
// Mamba's names: heads x value_dim is the inner width, key_dim the state's size N, groups those of
// B and C.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepsim {

enum class StateKind : std::uint8_t {
  kMamba2,
  kGatedDelta,
  kKimiDelta,
  kLightning,
  kMamba,
  kShort
};
inline constexpr std::size_t kStateKinds = 6;
std::string_view name_of(StateKind kind);  // "gated_delta"

// Every field is explained where it is declared for files, in workload/model/model_fields.cc.
struct StateSpec {
  StateKind kind = StateKind::kMamba2;
  std::int64_t heads = 0;  // 0: no layer has a state
  std::int64_t groups = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t convolution = 0;  // taps of the short convolution; 0: none
  bool convolution_bias = true;  // no effect with the delta rules, whose convolution has none
  std::int64_t rank = 0;         // of low-rank projections: mamba's steps, kimi_delta's gates
  bool full_gate = false;        // kimi_delta: the gate of the result is a whole projection
  bool bias = false;             // input and output projections have a bias
  bool inner_norm = true;        // of the result, before the output projection (mamba: of x's)
  std::int64_t chunk = 64;       // tokens that the kernels take together

  bool operator==(const StateSpec&) const = default;
};

}  // namespace stepsim
