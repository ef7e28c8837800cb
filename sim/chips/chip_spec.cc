#include "sim/chips/chip_spec.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/chips/chip_fields.h"

namespace stepsim {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

constexpr std::int64_t kNarrowStep = 16;
constexpr double kQueryBlock = 128;
constexpr double kFittedHead = 128;

std::int64_t tile_of(std::int64_t size, std::int64_t tile) {
  return std::min(tile, divide_up(size, kNarrowStep) * kNarrowStep);
}

// Returns the share of the arithmetic units' time that produces elements of the result. Tiles that
// stick out of the matrix and empty places in the last wave waste the rest.
double useful_share_of_waves(const Kernel& kernel, const MatmulEfficiency& efficiency) {
  const std::int64_t tile_m = tile_of(kernel.m, efficiency.tile_m);
  const std::int64_t tile_n = tile_of(kernel.n, efficiency.tile_n);
  const std::int64_t tiles =
      kernel.batch * divide_up(kernel.m, tile_m) * divide_up(kernel.n, tile_n);
  std::int64_t parts = 1;
  if (efficiency.least_split > 0 && tiles > 0 && tiles < efficiency.compute_units) {
    parts = std::max<std::int64_t>(
        1, std::min(efficiency.compute_units / tiles, kernel.k / efficiency.least_split));
  }
  const std::int64_t waves = divide_up(tiles * parts, efficiency.compute_units);
  const double paid = static_cast<double>(waves) * static_cast<double>(efficiency.compute_units) /
                      static_cast<double>(parts) * static_cast<double>(tile_m) *
                      static_cast<double>(tile_n);
  const double useful = static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                        static_cast<double>(kernel.n);
  return useful / paid;
}

// Returns the factor by which the ramps reduce an attention kernel's fraction of peak.
double attention_ramps(const Kernel& kernel, const Efficiency& efficiency) {
  const auto keys = static_cast<double>(kernel.n);
  const auto head = static_cast<double>(kernel.k);
  const double blocks =
      static_cast<double>(kernel.batch) * std::ceil(static_cast<double>(kernel.m) / kQueryBlock);
  const double units =
      efficiency.attention_tile_ramp * static_cast<double>(efficiency.matmul.compute_units);
  const double head_ramp = efficiency.attention_head_ramp;
  return keys / (keys + efficiency.attention_length_ramp) * blocks / (blocks + units) * head /
         (head + head_ramp) * (kFittedHead + head_ramp) / kFittedHead;
}

double achievable_flops_per_second(const Kernel& kernel, const ChipSpec& chip) {
  const Efficiency& efficiency = chip.efficiency;
  switch (kernel.kind) {
    case KernelKind::kMatmul: {
      const MatmulEfficiency& matmul = efficiency.matmul_for(kernel.type);
      const double inner = static_cast<double>(kernel.k);
      const double ramp = inner / (inner + matmul.inner_ramp);
      return chip.peak_of(kernel.type).value() * matmul.peak_fraction * ramp *
             (kernel.accumulates ? matmul.accumulating : 1) * useful_share_of_waves(kernel, matmul);
    }
    case KernelKind::kAttentionForward:
      return chip.peak_of(kernel.type).value() * efficiency.attention_forward_fraction *
             attention_ramps(kernel, efficiency);
    case KernelKind::kAttentionBackward:
      return chip.peak_of(kernel.type).value() * efficiency.attention_backward_fraction *
             attention_ramps(kernel, efficiency);
    case KernelKind::kElementwise:
      break;
  }
  return chip.peak_of(DataType::kFp32).value() * efficiency.elementwise_fraction;
}

// Returns the entry for `key`, or nullptr. The member `own` holds an entry's key.
template <typename Entry, typename Key>
const Entry* entry_for(const std::vector<Entry>& entries, std::optional<Key> Entry::*own, Key key) {
  const auto found = std::ranges::find(entries, key, own);
  return found == entries.end() ? nullptr : &*found;
}

// Reports entries of `list` with the same key as an earlier one. `field` is the key's name.
template <typename Entry, typename Key>
void find_repeats(const std::vector<Entry>& entries, std::optional<Key> Entry::*own,
                  const std::string& list, const std::string& field,
                  std::vector<Problem>& problems) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::optional<Key>& key = entries[i].*own;
    if (!key || entry_for(entries, own, *key) == &entries[i]) continue;
    problems.push_back({list + "[" + std::to_string(i) + "]." + field,
                        "is given twice: " + std::string(name_of(*key))});
  }
}

}  // namespace

const MatmulEfficiency& Efficiency::matmul_for(DataType type) const {
  const MatmulEfficiency* own = entry_for(matmul_of, &MatmulEfficiency::type, type);
  return own == nullptr ? matmul : *own;
}

std::optional<double> Efficiency::memory_fraction_of(ElementwiseKind kind) const {
  const ElementwiseEfficiency* own = entry_for(elementwise_of, &ElementwiseEfficiency::kind, kind);
  if (own == nullptr) return std::nullopt;
  return own->memory_fraction;
}

Bandwidth CommunicationUnits::reduction_of(DataType type) const {
  const Reduction* own = entry_for(reduction, &Reduction::type, type);
  return own == nullptr ? Bandwidth(0) : own->throughput;
}

Throughput ChipSpec::peak_of(DataType type) const {
  const Peak* own = entry_for(peak, &Peak::type, type);
  return own == nullptr ? Throughput(0) : own->throughput;
}

void ChipSpec::set_peak(DataType type, Throughput throughput) {
  std::erase_if(peak, [type](const Peak& other) { return other.type == type; });
  peak.push_back({type, throughput});
}

std::vector<Peak> peaks_of_all_types(Throughput throughput) {
  std::vector<Peak> peaks;
  for (int type = 0; type < kDataTypes; ++type) {
    peaks.push_back({static_cast<DataType>(type), throughput});
  }
  return peaks;
}

ChipSpec sustained(const ChipSpec& chip) {
  // Only the 16-bit peaks are slowed. The measured runs that need a slower clock compute in 16
  // bits; those in fp8 agree with the tables of fp8 kernels unchanged (docs/accuracy.md).
  ChipSpec slower = chip;
  for (Peak& peak : slower.peak) {
    if (peak.type != DataType::kBf16 && peak.type != DataType::kFp16) continue;
    peak.throughput = Throughput(peak.throughput.value() * chip.sustained_clock);
  }
  return slower;
}

ChipSpec with_sm_margin(const ChipSpec& chip, std::int64_t units) {
  if (units == 0) return chip;
  assert(units > 0 && units < chip.communication.units);
  ChipSpec fewer = chip;
  fewer.communication.margin = units;
  const double left =
      1 - static_cast<double>(units) / static_cast<double>(chip.communication.units);
  for (Peak& peak : fewer.peak) {
    peak.throughput = Throughput(peak.throughput.value() * left);
  }
  Efficiency& efficiency = fewer.efficiency;
  for (ElementwiseEfficiency& of : efficiency.elementwise_of) of.memory_fraction *= left;
  const auto reserve = [units](MatmulEfficiency& matmul) {
    if (matmul.compute_units > units) matmul.compute_units -= units;
  };
  reserve(efficiency.matmul);
  for (MatmulEfficiency& matmul : efficiency.matmul_of) reserve(matmul);
  return fewer;
}

std::vector<Problem> check(const ChipSpec& spec) {
  std::vector<Problem> problems = chip_fields().problems(spec);
  const auto add = [&](std::string field, std::string message) {
    problems.push_back({std::move(field), std::move(message)});
  };
  if (entry_for(spec.peak, &Peak::type, DataType::kFp32) == nullptr) {
    add("peak", "must have one of type fp32: elementwise kernels compute in fp32");
  }
  if (spec.memory_capacity > Bytes(0) && spec.fixed_memory > spec.memory_capacity) {
    add("fixed_memory", "must not be larger than memory_capacity (" +
                            std::to_string(spec.memory_capacity.value()) + " bytes), is " +
                            std::to_string(spec.fixed_memory.value()));
  }
  const Efficiency& efficiency = spec.efficiency;
  if (efficiency.matmul.type) add("efficiency.matmul.type", "is for matmul_of only");
  find_repeats(spec.peak, &Peak::type, "peak", "type", problems);
  find_repeats(efficiency.matmul_of, &MatmulEfficiency::type, "efficiency.matmul_of", "type",
               problems);
  find_repeats(efficiency.elementwise_of, &ElementwiseEfficiency::kind, "efficiency.elementwise_of",
               "kind", problems);
  find_repeats(spec.communication.reduction, &Reduction::type, "communication.reduction", "type",
               problems);
  return problems;
}

KernelTime time_of(const Kernel& kernel, const ChipSpec& chip) {
  KernelTime time;
  if (kernel.flops.value() > 0) {
    const double rate = achievable_flops_per_second(kernel, chip);
    assert(rate > 0);
    time.compute_s = kernel.flops.value() / rate;
  }
  const double bytes = static_cast<double>((kernel.read + kernel.written).value());
  if (bytes > 0) {
    // bytes / (peak x fraction x bytes / (bytes + ramp))
    const double ramp = static_cast<double>(chip.efficiency.memory_ramp.value());
    const double at_peak = (bytes + ramp) / chip.memory_bandwidth.value();
    time.memory_s = at_peak / chip.efficiency.memory_fraction;
    if (const auto reached = chip.efficiency.memory_fraction_of(kernel.elementwise)) {
      time.compute_s = std::max(time.compute_s, at_peak / *reached);
    }
  }
  time.overhead = chip.launch_overhead;
  time.total = slowed(time, {});
  return time;
}

Duration slowed(const KernelTime& time, CommunicationCost taken) {
  assert(taken.compute_share >= 0 && taken.compute_share < 1);
  assert(taken.memory_share >= 0 && taken.memory_share < 1);
  const double compute_s = time.compute_s / (1 - taken.compute_share);
  const double memory_s = time.memory_s / (1 - taken.memory_share);
  return duration_from_seconds(std::max(compute_s, memory_s)) + time.overhead;
}

}  // namespace stepsim
