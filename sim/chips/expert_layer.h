// The time of the experts of one mixture-of-experts layer on one chip, as a serving library runs
// them: it chooses each token's experts, sorts (and quantises) the rows by expert, multiplies with
// the gate and up matrices of the experts, applies the activation, multiplies with the down
// matrices and adds up what each token's experts gave. One call times all of it: the libraries fuse
// it in different ways, and tables of measurements have one time.
//
// A grouped matmul of N columns and an inner dimension K has tiles of a x b for the rows of each
// expert (Gale et al., MegaBlocks, arXiv 2211.15841; "grouped GEMM" of CUTLASS and Triton):
//
//   tiles    sum over experts of ceil(rows / a) x ceil(N / b); the library takes what is fastest of
//            a = least_rows .. 128 and b = 64, 128. The last, partial wave counts half as full
//   tile     max(2 a b (K + inner_ramp) / (peak / units x peak_fraction),
//                bytes of (a + b) (K + inner_ramp) operands at a unit's part of operand_bandwidth)
//   memory   the weights of experts that have a row, once; rows in and out
//   matmul = cbrt(tiles^3 + memory^3)
//
//   time = start (+ remote_start where other chips have experts) + first matmul + second matmul +
//   active experts x expert_start
//          + (rows + remote_rows x rows of other chips' experts) (hidden + inter) row_bytes
//            / bandwidth
//
// A layer that is repeated on the same weights (as benchmarks do) finds in the second-level cache
// what fits in there. Cost of a call: O(20).
//
// Not modelled: shared experts (dense matmuls beside these), communication, one kernel waiting for
// the host.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/chips/decode_attention.h"
#include "sim/chips/kernel.h"

namespace stepsim {

inline constexpr std::array<std::int64_t, 5> kExpertTiles{8, 16, 32, 64, 128};

// The rows of a chip's experts. Members are means where the routing is random.
struct ExpertLoad {
  double rows = 0;                                  // of all its experts: copies of tokens
  double active = 0;                                // experts that have a row
  std::array<double, kExpertTiles.size()> tiles{};  // blocks of kExpertTiles[i] rows they fill

  friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;
};

// Returns the load of experts with these numbers of rows.
ExpertLoad load_of(std::span<const std::int64_t> rows);
// Returns the mean load of `experts` that each of `tokens` chooses with this mean chance,
// independently. The most popular is chosen `spread` times as often as the least; logarithms of
// chances in between are evenly spaced.
ExpertLoad expected_load(std::int64_t tokens, std::int64_t experts, double chance,
                         double spread = 1);
// Returns the experts that have a row, on average, of the same.
double active_experts(std::int64_t tokens, std::int64_t experts, double chance, double spread);
ExpertLoad mean_of(std::span<const ExpertLoad> loads);  // REQUIRES: at least one

struct ExpertLayer {
  std::int64_t tokens = 0;  // that the chip sees, of all members of its group
  std::int64_t top_k = 1;
  std::int64_t hidden = 0;
  std::int64_t inter = 0;  // of an expert, the part on this chip
  bool gated = true;
  DataType type = DataType::kBf16;    // in which the matmuls compute
  std::optional<DataType> weights{};  // narrower than type: 4 bits under 16-bit inputs
  ExpertLoad load{};
  std::string_view library{};  // "": the chip's first for these types
  bool repeated = false;       // the weights were used just before
};

// Constants of one library's layer. Every field is explained where it is declared for files, in
// sim/chips/serving_fields.cc (`stepsim help chip`).
struct ExpertEfficiency {
  std::string library{};
  std::optional<DataType> type{};
  std::optional<DataType> weights{};

  Duration start{};
  double peak_fraction = 1;
  double inner_ramp = 0;
  std::int64_t least_rows = 16;
  std::optional<Bandwidth> operand_bandwidth{};
  double memory_fraction = 1;
  double row_bytes = 0;
  double remote_rows = 0;
  Duration expert_start{};
  Duration remote_start{};
};

struct ExpertTime {
  double matmuls_s = 0;
  double rows_s = 0;  // sorting, activation, adding up
  Duration starts{};
  Duration total{};
};

// Returns the layer that a kernel of kind kExperts stands for. REQUIRES: it has FLOPs.
ExpertLayer layer_of(const Kernel& kernel);

// Returns the first of `entries` whose keys match; nullptr if none does.
const ExpertEfficiency* find_experts(const std::vector<ExpertEfficiency>& entries,
                                     const ExpertLayer& layer);

// REQUIRES: sizes of at least 1; load.rows <= tokens x top_k; chip.peak and chip.bandwidth > 0.
ExpertTime time_of_experts(const ExpertLayer& layer, const ExpertEfficiency& efficiency,
                           const ServingChip& chip);

}  // namespace stepsim
