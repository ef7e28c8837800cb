#include "sim/chips/chip_spec.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/chips/chip_fields.h"
#include "sim/chips/kernel_energy.h"

namespace stepsim {
namespace {

constexpr double kQueryBlock = 128;
constexpr double kFittedHead = 128;

// Returns the share of a matrix unit's columns that heads of this size use: both products of
// attention have the head dimension as a side.
double filled_width(std::int64_t head, const Efficiency& efficiency) {
  if (!efficiency.attention_matrix_width || head < 1) return 1;
  const std::int64_t width = *efficiency.attention_matrix_width;
  const std::int64_t passes = (head + width - 1) / width;
  return static_cast<double>(head) / static_cast<double>(passes * width);
}

bool is_gathered(const Kernel& kernel, const Efficiency& efficiency) {
  return kernel.gathered && efficiency.gathered_attention.forward_fraction > 0;
}

// Returns the factor by which the ramps reduce an attention kernel's fraction of peak.
double attention_ramps(const Kernel& kernel, const Efficiency& efficiency) {
  const auto keys = static_cast<double>(kernel.n);
  if (is_gathered(kernel, efficiency)) {
    return keys / (keys + efficiency.gathered_attention.keys_ramp);
  }
  const auto head = static_cast<double>(kernel.k);
  const double blocks =
      static_cast<double>(kernel.batch) * std::ceil(static_cast<double>(kernel.m) / kQueryBlock);
  const double units =
      efficiency.attention_tile_ramp * static_cast<double>(efficiency.matmul.compute_units);
  const double head_ramp = efficiency.attention_head_ramp;
  return keys / (keys + efficiency.attention_length_ramp) * blocks / (blocks + units) * head /
         (head + head_ramp) * (kFittedHead + head_ramp) / kFittedHead *
         filled_width(kernel.k, efficiency);
}

double attention_fraction(const Kernel& kernel, const Efficiency& efficiency) {
  if (is_gathered(kernel, efficiency)) {
    return kernel.kind == KernelKind::kAttentionForward
               ? efficiency.gathered_attention.forward_fraction
               : efficiency.gathered_attention.backward_fraction;
  }
  return kernel.kind == KernelKind::kAttentionForward ? efficiency.attention_forward_fraction
                                                      : efficiency.attention_backward_fraction;
}

ServingChip serving_chip(const ChipSpec& chip, DataType type) {
  return {.peak = chip.peak_of(type).value(),
          .bandwidth = chip.memory_bandwidth.value(),
          .units = chip.efficiency.matmul.compute_units,
          .cache = chip.serving.cache,
          .launch_overhead = chip.launch_overhead};
}

// The kernel computes in the cache's type where the chip can.
DecodeTime decode_time(const Kernel& kernel, const ChipSpec& chip) {
  const DataType stored = kernel.stored.value_or(kernel.type);
  const bool narrow = chip.peak_of(stored) > Throughput(0);
  const ServingChip target = serving_chip(chip, narrow ? stored : kernel.type);
  const DecodeEfficiency* own = find_decode(
      kernel.kind == KernelKind::kLatentDecode ? chip.serving.latent_decode : chip.serving.decode,
      kernel);
  return time_of_decode(kernel, own == nullptr ? DecodeEfficiency{} : *own, target);
}

KernelTime time_of_separate_experts(const Kernel& kernel, const ExpertLayer& layer,
                                    const ChipSpec& chip);

// A chip without constants of a serving library multiplies all experts in two kernels, and moves
// their rows in others.
void set_times_of_experts(const Kernel& kernel, const ChipSpec& chip, KernelTime& time) {
  const ExpertLayer layer = layer_of(kernel);
  const ExpertEfficiency* own = find_experts(chip.serving.experts, layer);
  if (own == nullptr) {
    time = time_of_separate_experts(kernel, layer, chip);
    return;
  }
  ExpertTime experts = time_of_experts(layer, *own, serving_chip(chip, layer.type));
  // Servers have two ways to scale fp8, and take the faster one.
  if (layer.type == DataType::kFp8 && layer.weights.value_or(layer.type) == layer.type) {
    ExpertLayer by_block = layer;
    by_block.type = DataType::kFp8Block;
    by_block.weights.reset();
    if (const ExpertEfficiency* const other = find_experts(chip.serving.experts, by_block)) {
      const ExpertTime faster =
          time_of_experts(by_block, *other, serving_chip(chip, by_block.type));
      if (faster.total < experts.total) experts = faster;
    }
  }
  time.compute_s = experts.matmuls_s + experts.rows_s;
  time.memory_s = 0;
  time.overhead = experts.starts;
}

// Sets the times that the kernel takes at the clock of the peaks.
void set_times(const Kernel& kernel, const ChipSpec& chip, KernelTime& time) {
  const Efficiency& efficiency = chip.efficiency;
  const double bytes = static_cast<double>((kernel.read + kernel.written).value());
  const double ramp = static_cast<double>(efficiency.memory_ramp.value());
  const double at_peak = bytes > 0 ? (bytes + ramp) / chip.memory_bandwidth.value() : 0;
  time.memory_s = at_peak / efficiency.memory_fraction;
  time.overhead = chip.launch_overhead;
  const double flops = kernel.flops.value();
  if (flops > 0) {
    switch (kernel.kind) {
      case KernelKind::kMatmul: {
        const MatmulTime matmul =
            time_of_matmul(kernel, efficiency.matmul_for(kernel.type, kernel.stored),
                           {.peak = chip.peak_of(kernel.type).value(),
                            .bandwidth = chip.memory_bandwidth.value(),
                            .memory_fraction = efficiency.memory_fraction,
                            .memory_ramp = ramp,
                            .launch_overhead = chip.launch_overhead});
        time.compute_s = matmul.compute_s;
        time.memory_s = matmul.memory_s;
        time.overhead = matmul.start;
        break;
      }
      case KernelKind::kAttentionForward:
      case KernelKind::kAttentionBackward:
        time.compute_s =
            flops / (chip.peak_of(kernel.type).value() * attention_fraction(kernel, efficiency) *
                     attention_ramps(kernel, efficiency));
        break;
      case KernelKind::kAttentionDecode:
      case KernelKind::kLatentDecode: {
        const DecodeTime decode = decode_time(kernel, chip);
        time.compute_s = decode.overlapped_s;
        time.memory_s = decode.memory_s;
        time.overhead = decode.around;
        break;
      }
      case KernelKind::kExperts:
        set_times_of_experts(kernel, chip, time);
        break;
      case KernelKind::kElementwise:
        time.compute_s =
            flops / (chip.peak_of(DataType::kFp32).value() * efficiency.elementwise_fraction);
        break;
    }
  }
  if (const auto reached = efficiency.memory_fraction_of(kernel.elementwise)) {
    time.compute_s = std::max(time.compute_s, at_peak / *reached);
  }
}

KernelTime time_of_separate_experts(const Kernel& kernel, const ExpertLayer& layer,
                                    const ChipSpec& chip) {
  const auto active = std::max<std::int64_t>(1, std::llround(layer.load.active));
  const auto rows = std::max<std::int64_t>(1, std::llround(layer.load.rows));
  KernelTime sum;
  const auto add = [&](const Kernel& part) {
    KernelTime time;
    set_times(part, chip, time);
    const bool is_memory = time.memory_bound();
    sum.memory_s += is_memory ? time.memory_s : 0;
    sum.compute_s += is_memory ? 0 : time.compute_s;
    sum.overhead += time.overhead;
  };
  const auto multiply = [&](std::int64_t columns, std::int64_t inner) {
    Kernel product = kernel;
    product.kind = KernelKind::kMatmul;
    product.batch = active;
    product.m = (rows + active - 1) / active;
    product.n = columns;
    product.k = inner;
    product.flops = Flops(2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
                          static_cast<double>(inner));
    product.read = bytes_of(rows * inner, kernel.type) +
                   bytes_of(active * columns * inner, kernel.stored.value_or(kernel.type));
    product.written = bytes_of(rows * columns, DataType::kBf16);
    add(product);
  };
  const auto move_rows = [&](std::int64_t reads, std::int64_t writes) {
    add({.name = kernel.name,
         .flops = Flops(static_cast<double>(rows)),
         .read = bytes_of(rows * reads, DataType::kBf16),
         .written = bytes_of(rows * writes, DataType::kBf16)});
  };
  const std::int64_t inputs = kernel.gated ? 2 : 1;
  move_rows(layer.hidden, layer.hidden);  // sorts
  multiply(inputs * layer.inter, layer.hidden);
  move_rows(inputs * layer.inter, layer.inter);  // the activation
  multiply(layer.hidden, layer.inter);
  move_rows(layer.hidden, layer.hidden);  // adds up
  sum.compute_s += sum.memory_s;          // one after the other
  sum.memory_s = 0;
  return sum;
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

// The same of matmuls, whose keys are the type and that of narrower weights.
void find_repeated_matmuls(const std::vector<MatmulEfficiency>& entries,
                           std::vector<Problem>& problems) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto first = std::ranges::find_if(entries, [&](const MatmulEfficiency& entry) {
      return entry.type == entries[i].type && entry.weights == entries[i].weights;
    });
    if (!entries[i].type || &*first == &entries[i]) continue;
    const std::string under =
        entries[i].weights ? " with weights of " + std::string(name_of(*entries[i].weights)) : "";
    problems.push_back({"efficiency.matmul_of[" + std::to_string(i) + "].type",
                        "is given twice: " + std::string(name_of(*entries[i].type)) + under});
  }
}

}  // namespace

const MatmulEfficiency& Efficiency::matmul_for(DataType type,
                                               std::optional<DataType> weights) const {
  const auto find = [&](std::optional<DataType> narrow) {
    return std::ranges::find_if(matmul_of, [&](const MatmulEfficiency& entry) {
      return entry.type == type && entry.weights == narrow;
    });
  };
  if (const auto own = find(weights); own != matmul_of.end()) return *own;
  const auto plain = find(std::nullopt);
  return plain == matmul_of.end() ? matmul : *plain;
}

std::optional<double> Efficiency::memory_fraction_of(ElementwiseKind kind) const {
  const ElementwiseEfficiency* own = entry_for(elementwise_of, &ElementwiseEfficiency::kind, kind);
  if (own == nullptr) return std::nullopt;
  return own->memory_fraction;
}

Efficiency Efficiency::in_training(std::optional<AttentionLibrary> library) const {
  Efficiency training = *this;
  const auto entry_of = [this](std::optional<AttentionLibrary> wanted) {
    return std::ranges::find(attention_of, wanted, &AttentionEfficiency::library);
  };
  auto own = entry_of(library);
  const bool is_old = library == AttentionLibrary::kFlash1 || library == AttentionLibrary::kTriton;
  if (own == attention_of.end() && is_old) own = entry_of(AttentionLibrary::kFlash2);
  if (own == attention_of.end()) own = entry_of(std::nullopt);
  if (own == attention_of.end()) return training;
  training.attention_forward_fraction = own->forward_fraction;
  training.attention_backward_fraction = own->backward_fraction;
  training.attention_length_ramp = own->length_ramp.value_or(attention_length_ramp);
  return training;
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

double sustained_clock(const ChipSpec& chip, DataType type, double busy) {
  if (!chip.power || type == DataType::kFp32) return 1;
  const PowerLimit& power = *chip.power;
  const double at_full_clock = joules_of_flop(power, type) * chip.peak_of(type).value() * busy;
  const double budget = power.limit_watts - power.idle_watts;
  return at_full_clock > budget ? std::cbrt(budget / at_full_clock) : 1;
}

ChipSpec sustained(const ChipSpec& chip, bool slows_loads) {
  ChipSpec slower = chip;
  Efficiency& efficiency = slower.efficiency;
  std::erase_if(efficiency.matmul_of,
                [](const MatmulEfficiency& matmul) { return !matmul.weights; });
  const auto slow_matmul = [&](MatmulEfficiency& matmul, DataType type) {
    const double clock =
        sustained_clock(chip, type, busy_share(matmul, type, chip.peak_of(type).value()));
    matmul.peak_fraction *= clock;
    if (!slows_loads) return;
    if (auto& loads = matmul.operand_bandwidth) loads = Bandwidth(loads->value() * clock);
    matmul.step_time = duration_from_seconds(to_seconds(matmul.step_time) / clock);
  };
  for (MatmulEfficiency& narrow : efficiency.matmul_of) slow_matmul(narrow, *narrow.type);
  for (const Peak& peak : chip.peak) {
    MatmulEfficiency own = chip.efficiency.matmul_for(*peak.type);
    own.type = peak.type;
    slow_matmul(own, *peak.type);
    efficiency.matmul_of.push_back(own);
  }
  const auto slow = [&chip](double& fraction) {
    fraction *= sustained_clock(chip, DataType::kBf16, fraction);
  };
  slow(efficiency.attention_forward_fraction);
  slow(efficiency.attention_backward_fraction);
  return slower;
}

ChipSpec slowest_of(std::int64_t chips, const ChipSpec& chip) {
  assert(chips >= 1);
  ChipSpec slowest = chip;
  if (!slowest.power) return slowest;
  slowest.power->joules_per_teraflop *=
      1 + slowest.power->energy_spread * expected_largest_normal(chips);
  return slowest;
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
  const auto reserve = [units, left](MatmulEfficiency& matmul) {
    if (matmul.compute_units > units) matmul.compute_units -= units;
    if (matmul.operand_bandwidth) {  // a unit loads as fast as before
      matmul.operand_bandwidth = Bandwidth(matmul.operand_bandwidth->value() * left);
    }
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
  if (spec.power && spec.power->limit_watts <= spec.power->idle_watts) {
    add("power.limit_watts", "must be more than power.idle_watts");
  }
  const Efficiency& efficiency = spec.efficiency;
  if (efficiency.matmul.type) add("efficiency.matmul.type", "is for matmul_of only");
  if (efficiency.matmul.weights) add("efficiency.matmul.weights", "is for matmul_of only");
  find_repeats(spec.peak, &Peak::type, "peak", "type", problems);
  find_repeated_matmuls(efficiency.matmul_of, problems);
  find_repeats(efficiency.elementwise_of, &ElementwiseEfficiency::kind, "efficiency.elementwise_of",
               "kind", problems);
  find_repeats(efficiency.attention_of, &AttentionEfficiency::library, "efficiency.attention_of",
               "library", problems);
  find_repeats(spec.communication.reduction, &Reduction::type, "communication.reduction", "type",
               problems);
  return problems;
}

KernelTime time_of(const Kernel& kernel, const ChipSpec& chip) {
  KernelTime time;
  if (kernel.recorded) {
    time.overhead = *kernel.recorded;
  } else {
    set_times(kernel, chip, time);
  }
  assert(std::isfinite(time.compute_s) && std::isfinite(time.memory_s));
  time.total = slowed(time, {});
  return time;
}

ExpertTime time_of(const ExpertLayer& layer, const ChipSpec& chip) {
  const ExpertEfficiency* own = find_experts(chip.serving.experts, layer);
  return time_of_experts(layer, own == nullptr ? ExpertEfficiency{} : *own,
                         serving_chip(chip, layer.type));
}

Duration time_to_quantize(std::int64_t values, DataType type, const ChipSpec& chip) {
  const MatmulEfficiency& matmul = chip.efficiency.matmul_for(type);
  const double bytes = static_cast<double>(values) * matmul.quantize_bytes;
  const double reached = matmul.memory_fraction.value_or(chip.efficiency.memory_fraction);
  return matmul.quantize_start +
         duration_from_seconds(bytes / (chip.memory_bandwidth.value() * reached));
}

Duration slowed(const KernelTime& time, CommunicationCost taken) {
  assert(taken.compute_share >= 0 && taken.compute_share < 1);
  assert(taken.memory_share >= 0 && taken.memory_share < 1);
  const double compute_s = time.compute_s / (1 - taken.compute_share);
  const double memory_s = time.memory_s / (1 - taken.memory_share);
  return duration_from_seconds(std::max(compute_s, memory_s)) + time.overhead;
}

}  // namespace stepsim
