#include "sim/chips/matmul_model.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "sim/base/overlapped.h"

namespace stepsim {
namespace {

constexpr std::int64_t kNarrowStep = 16;
constexpr std::int64_t kLeastTileRows = 16;
constexpr std::int64_t kLeastColumns = 32;
constexpr std::int64_t kMostSplit = 16;
constexpr double kInnerStep = 64;         // of k: a tile asks for so many at a time
constexpr double kInstructionDepth = 32;  // of k: operand traffic is counted for so many at a time
constexpr std::int64_t kAlignment = 128;  // bits that one load moves

// Squares: what overlap_loss = 1 means (sim/chips/chip_fields.cc).
constexpr int kComputingAndMemory = 2;

struct Tile {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t parts;  // of the inner dimension
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t narrowed(std::int64_t size, std::int64_t tile) {
  return std::min(tile, divide_up(size, kNarrowStep) * kNarrowStep);
}

double slowdown_of_tile(const MatmulEfficiency& efficiency, double rows, double columns) {
  return 1 + kInstructionDepth * efficiency.tile_overhead * (rows + columns) / (rows * columns);
}

// Returns what an element that one unit loads from caches takes; 0: no limit of their rate.
double seconds_per_operand(const MatmulEfficiency& efficiency, DataType type) {
  if (!efficiency.operand_bandwidth) return 0;
  return static_cast<double>(bits_of(type)) / 8 * static_cast<double>(efficiency.compute_units) /
         efficiency.operand_bandwidth->value();
}

// Returns what a tile takes for one value of k beside loading its operands.
double seconds_per_inner(const MatmulEfficiency& efficiency) {
  return to_seconds(efficiency.step_time) / kInnerStep;
}

bool is_aligned(const Kernel& kernel) {
  const std::int64_t bits = bits_of(kernel.type);
  return kernel.k * bits % kAlignment == 0 && kernel.n * bits % kAlignment == 0;
}

// What does not depend on the tile.
class TileCosts {
 public:
  TileCosts(const Kernel& kernel, const MatmulEfficiency& efficiency, const MatmulChip& chip)
      : kernel_(kernel),
        efficiency_(efficiency),
        inner_(static_cast<double>(kernel.k)),
        bytes_(static_cast<double>((kernel.read + kernel.written).value())),
        start_(efficiency.start.value_or(chip.launch_overhead)),
        split_start_(efficiency.split_start.value_or(start_ / 2)),
        s_per_operand_(seconds_per_operand(efficiency, kernel.type)),
        s_per_inner_(seconds_per_inner(efficiency)) {
    const double units = static_cast<double>(efficiency.compute_units);
    const double reached = efficiency.peak_fraction *
                           (kernel.accumulates ? efficiency.accumulating : 1) *
                           (is_aligned(kernel) ? 1 : efficiency.unaligned);
    const double of_shape = 2 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                            static_cast<double>(kernel.n) * inner_;
    s_per_flop_ = units / (chip.peak * reached) * kernel.flops.value() / of_shape;
    if (kernel.stored) {
      column_weight_ = mean_bytes_of(*kernel.stored) / mean_bytes_of(kernel.type);
    }
    s_per_byte_ = 1 / (chip.bandwidth * efficiency.memory_fraction.value_or(chip.memory_fraction));
    if (bytes_ > 0 && !efficiency.memory_fraction) bytes_ += chip.memory_ramp;
    if (kernel.accumulates) {
      const Bytes narrow = kernel.batch * kernel.m * kernel.n * size_of(DataType::kBf16);
      const auto more = static_cast<double>(2 * (kernel.written - narrow).value());
      sums_s_ = efficiency.exposed_accumulation * std::max(0.0, more) * s_per_byte_;
    }
    partial_bytes_ = static_cast<double>(2 * size_of(DataType::kFp32).value()) *
                     static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                     static_cast<double>(kernel.n);
  }

  std::int64_t tiles(const Tile& tile) const {
    return kernel_.batch * divide_up(kernel_.m, tile.rows) * divide_up(kernel_.n, tile.columns);
  }

  double waves_of(std::int64_t tiles) const {
    const auto exact = static_cast<double>(tiles) / static_cast<double>(efficiency_.compute_units);
    const auto full = static_cast<double>(divide_up(tiles, efficiency_.compute_units));
    return exact > 1 ? exact + efficiency_.last_wave * (full - exact) : full;
  }

  MatmulTime time(const Tile& tile) const {
    const auto rows = static_cast<double>(tile.rows);
    const auto columns = static_cast<double>(tile.columns);
    const double part = inner_ / static_cast<double>(tile.parts);
    const double waves = waves_of(tiles(tile) * tile.parts);
    const double area = rows * columns;
    const double compute = 2 * area * (part + efficiency_.inner_ramp) *
                           slowdown_of_tile(efficiency_, rows, columns) * s_per_flop_;
    const double loading =
        part * ((rows + columns * column_weight_) * s_per_operand_ + s_per_inner_);
    const bool split = tile.parts > 1;
    const double partial = split ? partial_bytes_ * static_cast<double>(tile.parts) : 0;
    MatmulTime time{.compute_s = waves * std::max(compute, loading) + sums_s_,
                    .memory_s = (bytes_ + partial) * s_per_byte_,
                    .start = split ? start_ + split_start_ : start_};
    const double exposed = exposed_s(time);
    time.compute_s += exposed;
    time.memory_s += exposed;
    return time;
  }

 private:
  // Returns what neither hides of the other.
  double exposed_s(const MatmulTime& time) const {
    if (efficiency_.overlap_loss == 0) return 0;
    const double longer = std::max(time.compute_s, time.memory_s);
    return efficiency_.overlap_loss *
           (overlapped<kComputingAndMemory>(time.compute_s, time.memory_s) - longer);
  }

  const Kernel& kernel_;
  const MatmulEfficiency& efficiency_;
  double inner_;
  double bytes_;
  Duration start_;
  Duration split_start_;
  double s_per_operand_;      // element that one unit loads
  double s_per_inner_;        // value of k, beside the loads
  double s_per_flop_ = 0;     // of one unit
  double column_weight_ = 1;  // of an element of the second operand, in those of the first
  double s_per_byte_ = 0;
  double sums_s_ = 0;
  double partial_bytes_ = 0;  // of one part
};

double seconds(const MatmulTime& time) {
  return std::max(time.compute_s, time.memory_s) + to_seconds(time.start);
}

// Calls visit(rows, columns) for each tile of the library.
template <typename Visit>
void for_each_tile(const Kernel& kernel, const MatmulEfficiency& efficiency, const Visit& visit) {
  const std::int64_t most = std::max(efficiency.tile_m, efficiency.tile_n);
  const std::int64_t area = efficiency.tile_m * efficiency.tile_n;
  if (!efficiency.smaller_tiles) {
    visit(narrowed(kernel.m, efficiency.tile_m), narrowed(kernel.n, efficiency.tile_n));
    return;
  }
  for (std::int64_t rows = most; rows >= std::min(most, kLeastTileRows); rows /= 2) {
    for (std::int64_t columns = most; columns >= std::min(most, kLeastColumns); columns /= 2) {
      if (rows * columns <= area) visit(rows, columns);
    }
  }
}

}  // namespace

double busy_share(const MatmulEfficiency& efficiency, DataType type, double peak) {
  assert(peak > 0);
  const auto rows = static_cast<double>(efficiency.tile_m);
  const auto columns = static_cast<double>(efficiency.tile_n);
  const double reached = efficiency.peak_fraction / slowdown_of_tile(efficiency, rows, columns);
  // Both of one value of k.
  const double flops = 2 * rows * columns;
  const double loading =
      (rows + columns) * seconds_per_operand(efficiency, type) + seconds_per_inner(efficiency);
  const auto units = static_cast<double>(efficiency.compute_units);
  return loading > 0 ? std::min(reached, flops * units / (peak * loading)) : reached;
}

MatmulTime time_of_matmul(const Kernel& kernel, const MatmulEfficiency& efficiency,
                          const MatmulChip& chip) {
  const TileCosts costs(kernel, efficiency, chip);
  std::optional<MatmulTime> best;
  const auto take = [&](const Tile& tile) {
    const MatmulTime time = costs.time(tile);
    if (!best || seconds(time) < seconds(*best)) best = time;
  };
  for_each_tile(kernel, efficiency, [&](std::int64_t rows, std::int64_t columns) {
    Tile tile{.rows = rows, .columns = columns, .parts = 1};
    take(tile);
    if (efficiency.least_split == 0 || kernel.sequential) return;
    for (tile.parts = 2; tile.parts <= kMostSplit; tile.parts *= 2) {
      if (kernel.k / tile.parts < efficiency.least_split) break;
      take(tile);
    }
  });
  return *best;
}

}  // namespace stepsim
