#include "sim/chips/decode_attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/overlapped.h"

namespace stepsim {
namespace {

constexpr std::array<std::int64_t, 14> kParts{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
constexpr std::int64_t kKeyTile = 64;
// Cubes, fitted with the constants of DecodeEfficiency (scripts/fit_serving_kernels).
constexpr int kBlocksAndMemory = 3;
constexpr std::int64_t kLeastRows = 16;  // of a matrix instruction

std::int64_t rounded_up(std::int64_t size, std::int64_t tile) {
  return (size + tile - 1) / tile * tile;
}

bool are_heads_apart(const Kernel& kernel, const DecodeEfficiency& efficiency) {
  return kernel.beside_prompts && efficiency.beside_prompts.has_value();
}

// What does not depend on the number of parts.
class DecodeCosts {
 public:
  DecodeCosts(const Kernel& kernel, const DecodeEfficiency& efficiency, const ServingChip& chip)
      : efficiency_(efficiency),
        block_start_(to_seconds(efficiency.block_start)),
        key_tiles_((kernel.n + kKeyTile - 1) / kKeyTile),
        slots_(efficiency.blocks_per_unit * static_cast<double>(chip.units)) {
    const auto heads = static_cast<double>(kernel.batch);
    const auto rows = static_cast<double>(kernel.m);
    const auto width = static_cast<double>(kernel.k);
    const double values =
        kernel.flops.value() / (2 * heads * rows * static_cast<double>(kernel.n)) - width;
    const double stored = mean_bytes_of(kernel.stored.value_or(kernel.type));
    const double key_bytes =
        (kernel.kind == KernelKind::kLatentDecode ? width : width + values) * stored;
    const std::int64_t tile = kernel.m <= efficiency.narrow_rows
                                  ? kLeastRows
                                  : std::min(efficiency.row_tile, rounded_up(kernel.m, kLeastRows));
    blocks_ = heads * static_cast<double>(rounded_up(kernel.m, tile) / tile);
    const double arithmetic = 2 * static_cast<double>(tile) * (width + values) * slots_ /
                              (chip.peak * efficiency.peak_fraction);
    const double loading =
        efficiency.block_bandwidth ? key_bytes / efficiency.block_bandwidth->value() : 0;
    s_per_key_ = std::max(arithmetic, loading);
    const double cached = heads * static_cast<double>(kernel.n) * key_bytes;
    const double s_per_cached = chip.cache ? 1 / chip.cache->bandwidth.value() : 1 / chip.bandwidth;
    const double share = kernel.repeated ? share_from_memory(cached, chip.cache) : 1;
    memory_s_ = cached * (share / (chip.bandwidth * efficiency.memory_fraction) +
                          (1 - share) * s_per_cached);
    part_s_ = heads * rows * values * static_cast<double>(2 * size_of(DataType::kFp32).value()) *
              s_per_cached;
    around_s_ = to_seconds(efficiency.start.value_or(chip.launch_overhead)) +
                heads * rows * (width + values) * efficiency.query_bytes / chip.bandwidth;
    if (!are_heads_apart(kernel, efficiency)) return;
    const SingleHeadBlocks& single = *efficiency.beside_prompts;
    block_start_ = to_seconds(single.start);
    blocks_ = heads * rows;
    s_per_key_ = key_bytes / single.bandwidth.value();
    around_s_ -= to_seconds(efficiency.start.value_or(chip.launch_overhead));
  }

  // REQUIRES: parts is at most key_tiles().
  DecodeTime time(std::int64_t parts) const {
    const auto s = static_cast<double>(parts);
    const double block = block_start_ + s_per_key_ * static_cast<double>((key_tiles_ + parts - 1) /
                                                                         parts * kKeyTile);
    const double waves = std::max(1.0, blocks_ * s / slots_);
    const double computing = (waves + std::ceil(waves)) / 2 * block;
    const double split = parts > 1 ? to_seconds(efficiency_.split_start) + s * part_s_ : 0;
    return {.memory_s = memory_s_,
            .overlapped_s = overlapped<kBlocksAndMemory>(computing, memory_s_),
            .around = duration_from_seconds(around_s_ + split)};
  }

  std::int64_t key_tiles() const { return key_tiles_; }

 private:
  const DecodeEfficiency& efficiency_;
  double block_start_;
  std::int64_t key_tiles_;
  double slots_;
  double blocks_ = 0;  // of one part
  double s_per_key_ = 0;
  double memory_s_ = 0;
  double part_s_ = 0;  // of the results of one part
  double around_s_ = 0;
};

double seconds(const DecodeTime& time) {
  return time.overlapped_s + to_seconds(time.around);
}

bool matches(const DecodeEfficiency& entry, const Kernel& kernel) {
  const bool own_heads = kernel.m == 1;
  return (kernel.library.empty() || entry.library == kernel.library) &&
         (!entry.stored || *entry.stored == kernel.stored.value_or(kernel.type)) &&
         (!entry.own_heads || *entry.own_heads == own_heads) &&
         (!entry.head_dim || *entry.head_dim == kernel.k);
}

}  // namespace

double share_from_memory(double bytes, const std::optional<ChipCache>& cache) {
  if (!cache || cache->capacity <= Bytes(0)) return 1;
  const auto capacity = static_cast<double>(cache->capacity.value());
  return std::clamp(bytes / capacity - 1, 0.0, 1.0);
}

const DecodeEfficiency* find_decode(const std::vector<DecodeEfficiency>& entries,
                                    const Kernel& kernel) {
  const auto found = std::ranges::find_if(
      entries, [&](const DecodeEfficiency& entry) { return matches(entry, kernel); });
  return found == entries.end() ? nullptr : &*found;
}

DecodeTime time_of_decode(const Kernel& kernel, const DecodeEfficiency& efficiency,
                          const ServingChip& chip) {
  const DecodeCosts costs(kernel, efficiency, chip);
  DecodeTime best = costs.time(1);
  if (are_heads_apart(kernel, efficiency)) return best;
  for (const std::int64_t parts : kParts) {
    const DecodeTime time = costs.time(std::min(parts, costs.key_tiles()));
    if (seconds(time) < seconds(best)) best = time;
    if (parts >= costs.key_tiles()) break;
  }
  return best;
}

}  // namespace stepsim
