// The time of a matmul on a chip: which tile the library takes, what a wave of tiles computes and
// loads, and what the chip's memory moves.
//
// The library chooses: the least time over its tiles (MatmulEfficiency::smaller_tiles) and over
// splits of the inner dimension in 1, 2, 4, 8 or 16 parts. For tiles of a x b and parts of k / s,
//
//   waves    w = batch x ceil(m / a) x ceil(n / b) x s / units, the last one counted as full for a
//            share of what it lacks: w + last_wave (ceil(w) - w), and at least 1
//   compute  of a wave: 2 a b (k / s + inner_ramp) / (peak / units x peak_fraction x share), where
//            share = a b / (a b + 32 tile_overhead (a + b)): small tiles read more operands from
//            shared memory for each multiplication
//   loading  of a wave: (a + b) k / s elements at a unit's part of operand_bandwidth, from caches;
//            those of a narrower second operand (Kernel::stored) count by their bits. On top
//            step_time for each 64 of k / s: a tile waits for one step's operands before it asks
//            for others, so thin tiles don't load as fast as thick ones
//   memory   each byte of the kernel once, and partial sums in fp32 (written and read by each part)
//   sums     where the result is added to memory: exposed_accumulation x the time in which the
//   memory
//            reads and writes what sums have beyond 16 bits. A tile adds at its end, when its unit
//            multiplies nothing.
//
//   time = max(c, memory) + overlap_loss (sqrt(c^2 + memory^2) - max(c, memory)) + start, where
//          c = waves x max(compute, loading) + sums, and split_start for a split: a kernel of its
//          own may add up the parts
//
// The form is that of tile and wave quantisation (NVIDIA, "Matrix Multiplication Background User's
// Guide"), with the loads of a unit beside its arithmetic. Cost of a call: O(tiles x splits), at
// most 125.
//
// last_wave is 1 where a chip works in lockstep, less where units drift apart, take smaller tiles
// at the end, or share tiles along k (stream-k; Osama et al. 2023).
//
// Where both take long, the first loads and the last results of a wave wait for each other: the
// roofline's knee is round (overlap_loss), by a tenth to a quarter where both take the same.
//
// Not modelled: misses of the second-level cache (operands are read from memory once), the order
// of tiles.

#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/units.h"
#include "sim/chips/kernel.h"

namespace stepsim {

// Every field is explained where it is declared for files, in sim/chips/chip_fields.cc
// (`stepsim help chip`).
struct MatmulEfficiency {
  std::optional<DataType> type{};     // in Efficiency::matmul_of, where it is always set
  std::optional<DataType> weights{};  // in Efficiency::matmul_of: narrower second operands
  double peak_fraction = 1;
  std::int64_t tile_m = 1;
  std::int64_t tile_n = 1;
  bool smaller_tiles = false;
  double tile_overhead = 0;
  std::int64_t compute_units = 1;
  double last_wave = 1;
  double inner_ramp = 0;
  std::int64_t least_split = 0;
  std::optional<Bandwidth> operand_bandwidth{};
  Duration step_time{};
  std::optional<double> memory_fraction{};
  double overlap_loss = 0;
  std::optional<Duration> start{};
  std::optional<Duration> split_start{};
  double accumulating = 1;
  double exposed_accumulation = 0;
  double unaligned = 1;
  Duration quantize_start{};
  double quantize_bytes = 0;
};

// What the model needs of a chip. The last three hold where the matmul has no values of its own.
struct MatmulChip {
  double peak = 0;       // FLOP/s of the kernel's type
  double bandwidth = 0;  // bytes/s, peak
  double memory_fraction = 1;
  double memory_ramp = 0;  // bytes
  Duration launch_overhead{};
};

// Both count what neither hides of the other.
struct MatmulTime {
  double compute_s = 0;  // arithmetic and loads of operands from caches
  double memory_s = 0;
  Duration start{};
};

// Returns the share of their cycles that the units compute in during large matmuls: of the largest
// tile, whose arithmetic or loads take longer, with an endless inner dimension.
// REQUIRES: peak > 0, in FLOP/s of operands of `type`.
double busy_share(const MatmulEfficiency& efficiency, DataType type, double peak);

// A kernel whose FLOPs are not those of its shape (groups of unequal rows) takes its time in
// proportion. REQUIRES: kernel is a matmul with a batch, m, n and k of at least 1; chip.peak > 0.
MatmulTime time_of_matmul(const Kernel& kernel, const MatmulEfficiency& efficiency,
                          const MatmulChip& chip);

}  // namespace stepsim
