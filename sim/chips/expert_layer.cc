#include "sim/chips/expert_layer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "sim/base/overlapped.h"

namespace stepsim {
namespace {

constexpr std::array<double, 2> kTileColumns{64, 128};

// Cubes, fitted with the constants of ExpertEfficiency (scripts/fit_serving_kernels).
constexpr int kTilesAndMemory = 3;

// Both matmuls of a layer.
class GroupedCosts {
 public:
  GroupedCosts(const ExpertLayer& layer, const ExpertEfficiency& efficiency,
               const ServingChip& chip)
      : load_(layer.load),
        efficiency_(efficiency),
        units_(static_cast<double>(chip.units)),
        row_bytes_(mean_bytes_of(layer.type)),
        weight_bytes_(mean_bytes_of(layer.weights.value_or(layer.type))),
        s_per_flop_(units_ / (chip.peak * efficiency.peak_fraction)),
        s_per_byte_(1 / (chip.bandwidth * efficiency.memory_fraction)),
        s_per_weight_(s_per_byte_) {
    if (efficiency.operand_bandwidth) {
      s_per_operand_ = units_ / efficiency.operand_bandwidth->value();
    }
    if (!layer.repeated || !chip.cache) return;
    const double matrices = layer.gated ? 3 : 2;
    const double weights = load_.active * matrices * static_cast<double>(layer.hidden) *
                           static_cast<double>(layer.inter) * weight_bytes_;
    const double share = share_from_memory(weights, chip.cache);
    s_per_weight_ = share * s_per_byte_ + (1 - share) / chip.cache->bandwidth.value();
  }

  double seconds(double columns, double inner) const {
    const double result = 2;  // bytes of a value
    const double memory = load_.active * columns * inner * weight_bytes_ * s_per_weight_ +
                          load_.rows * (inner * row_bytes_ + columns * result) * s_per_byte_;
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t tile = 0; tile < kExpertTiles.size(); ++tile) {
      if (kExpertTiles[tile] < efficiency_.least_rows) continue;
      for (const double b : kTileColumns) best = std::min(best, computing(tile, b, columns, inner));
    }
    return overlapped<kTilesAndMemory>(best, memory);
  }

 private:
  double computing(std::size_t tile, double b, double columns, double inner) const {
    const auto a = static_cast<double>(kExpertTiles[tile]);
    const double waves = std::max(1.0, load_.tiles[tile] * std::ceil(columns / b) / units_);
    const double steps = inner + efficiency_.inner_ramp;
    const double arithmetic = 2 * a * b * steps * s_per_flop_;
    const double loading = (a * row_bytes_ + b * weight_bytes_) * steps * s_per_operand_;
    return (waves + std::ceil(waves)) / 2 * std::max(arithmetic, loading);
  }

  const ExpertLoad& load_;
  const ExpertEfficiency& efficiency_;
  double units_;
  double row_bytes_;
  double weight_bytes_;
  double s_per_flop_;  // of one unit
  double s_per_byte_;
  double s_per_weight_;
  double s_per_operand_ = 0;  // byte that one unit loads
};

bool matches(const ExpertEfficiency& entry, const ExpertLayer& layer) {
  return (layer.library.empty() || entry.library == layer.library) &&
         (!entry.type || *entry.type == layer.type) &&
         entry.weights.value_or(layer.type) == layer.weights.value_or(layer.type);
}

}  // namespace

ExpertLoad load_of(std::span<const std::int64_t> rows) {
  ExpertLoad load;
  for (const std::int64_t of_expert : rows) {
    load.rows += static_cast<double>(of_expert);
    load.active += of_expert > 0 ? 1 : 0;
    for (std::size_t tile = 0; tile < kExpertTiles.size(); ++tile) {
      load.tiles[tile] +=
          static_cast<double>((of_expert + kExpertTiles[tile] - 1) / kExpertTiles[tile]);
    }
  }
  return load;
}

namespace {

ExpertLoad load_of_alike(std::int64_t tokens, double count, double chance) {
  const double mean = static_cast<double>(tokens) * chance;
  ExpertLoad load{.rows = count * mean};
  // Beyond a few tiles the last one is half full.
  constexpr double kMany = 2000;  // rows of an expert
  if (mean > kMany) {
    load.active = count;
    for (std::size_t tile = 0; tile < kExpertTiles.size(); ++tile) {
      load.tiles[tile] = count * (mean / static_cast<double>(kExpertTiles[tile]) + 0.5);
    }
    return load;
  }
  // The binomial distribution, from its logarithm, as it may begin below the least double.
  const auto n = static_cast<double>(tokens);
  const double odds = chance < 1 ? std::log(chance) - std::log1p(-chance) : 0;
  const double spread = 10 * std::sqrt(mean) + 20;
  const auto end = static_cast<std::int64_t>(std::min(n, mean + spread));
  double log_of = n * (chance < 1 ? std::log1p(-chance) : 0);
  for (std::int64_t rows = 0; rows <= end; ++rows) {
    const double probability = chance < 1 ? std::exp(log_of) : (rows == tokens ? 1 : 0);
    load.active += rows > 0 ? count * probability : 0;
    for (std::size_t tile = 0; tile < kExpertTiles.size(); ++tile) {
      const std::int64_t tiles = (rows + kExpertTiles[tile] - 1) / kExpertTiles[tile];
      load.tiles[tile] += count * probability * static_cast<double>(tiles);
    }
    log_of += odds + std::log((n - static_cast<double>(rows)) / static_cast<double>(rows + 1));
  }
  return load;
}

// Calls visit(experts, chance) for groups of experts that are about as popular. No chance is above
// 1, so the mean may fall.
template <class Visit>
void for_each_popularity(std::int64_t experts, double chance, double spread, const Visit& visit) {
  constexpr int kGroups = 8;
  const auto count = static_cast<double>(experts);
  if (spread <= 1) return visit(count, chance);
  const double step = std::pow(spread, 1.0 / kGroups);
  double sum = 0;
  for (int i = 0; i < kGroups; ++i) sum += std::pow(step, i + 0.5);
  for (int i = 0; i < kGroups; ++i) {
    visit(count / kGroups, std::min(1.0, chance * kGroups * std::pow(step, i + 0.5) / sum));
  }
}

}  // namespace

ExpertLoad expected_load(std::int64_t tokens, std::int64_t experts, double chance, double spread) {
  ExpertLoad load;
  for_each_popularity(experts, chance, spread, [&](double count, double own) {
    const ExpertLoad group = load_of_alike(tokens, count, own);
    load.rows += group.rows;
    load.active += group.active;
    for (std::size_t tile = 0; tile < kExpertTiles.size(); ++tile) {
      load.tiles[tile] += group.tiles[tile];
    }
  });
  load.rows = static_cast<double>(experts) * static_cast<double>(tokens) * chance;
  return load;
}

double active_experts(std::int64_t tokens, std::int64_t experts, double chance, double spread) {
  double active = 0;
  for_each_popularity(experts, chance, spread, [&](double count, double own) {
    active += count * (1 - std::pow(1 - own, static_cast<double>(tokens)));
  });
  return active;
}

ExpertLayer layer_of(const Kernel& kernel) {
  assert(kernel.kind == KernelKind::kExperts && kernel.flops.value() > 0);
  const double of_a_row =
      2.0 * (kernel.gated ? 3 : 2) * static_cast<double>(kernel.n) * static_cast<double>(kernel.k);
  const double copies = kernel.flops.value() / of_a_row;
  const double chance =
      copies / (static_cast<double>(kernel.m) * static_cast<double>(kernel.batch));
  return {.tokens = kernel.m,
          .top_k = kernel.choices,
          .hidden = kernel.k,
          .inter = kernel.n,
          .gated = kernel.gated,
          .type = kernel.type,
          .weights = kernel.stored,
          .load = expected_load(kernel.m, kernel.batch, std::min(1.0, chance),
                                static_cast<double>(kernel.spread)),
          .library = kernel.library,
          .repeated = kernel.repeated};
}

ExpertLoad mean_of(std::span<const ExpertLoad> loads) {
  assert(!loads.empty());
  ExpertLoad mean;
  const double part = 1 / static_cast<double>(loads.size());
  for (const ExpertLoad& load : loads) {
    mean.rows += part * load.rows;
    mean.active += part * load.active;
    for (std::size_t tile = 0; tile < kExpertTiles.size(); ++tile) {
      mean.tiles[tile] += part * load.tiles[tile];
    }
  }
  return mean;
}

const ExpertEfficiency* find_experts(const std::vector<ExpertEfficiency>& entries,
                                     const ExpertLayer& layer) {
  const auto found = std::ranges::find_if(
      entries, [&](const ExpertEfficiency& entry) { return matches(entry, layer); });
  return found == entries.end() ? nullptr : &*found;
}

ExpertTime time_of_experts(const ExpertLayer& layer, const ExpertEfficiency& efficiency,
                           const ServingChip& chip) {
  const GroupedCosts matmul(layer, efficiency, chip);
  const auto hidden = static_cast<double>(layer.hidden);
  const auto inter = static_cast<double>(layer.inter);
  const double routed = static_cast<double>(layer.tokens) * static_cast<double>(layer.top_k);
  const double remote = std::max(0.0, routed - layer.load.rows);
  ExpertTime time;
  time.matmuls_s =
      matmul.seconds((layer.gated ? 2 : 1) * inter, hidden) + matmul.seconds(hidden, inter);
  time.rows_s = (layer.load.rows + efficiency.remote_rows * remote) * (hidden + inter) *
                efficiency.row_bytes / chip.bandwidth;
  time.starts = efficiency.start +
                duration_from_seconds(layer.load.active * to_seconds(efficiency.expert_start));
  constexpr double kRounding = 1e-3;
  if (remote > kRounding * routed) time.starts += efficiency.remote_start;
  time.total = time.starts + duration_from_seconds(time.matmuls_s + time.rows_s);
  return time;
}

}  // namespace stepsim
