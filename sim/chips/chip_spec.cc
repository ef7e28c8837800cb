#include "sim/chips/chip_spec.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace stepsim {
namespace {

std::string text(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  assert(error == std::errc());
  return {buffer.data(), end};
}

// Collects what is wrong. Comparisons are written so that NaN is wrong too.
class Checker {
 public:
  void positive(std::string_view field, double value) {
    if (!(value > 0)) add(field, "must be positive, is " + text(value));
  }
  void not_negative(std::string_view field, double value) {
    if (!(value >= 0)) add(field, "must not be negative, is " + text(value));
  }
  void at_least_one(std::string_view field, std::int64_t value) {
    if (value < 1) add(field, "must be at least 1, is " + std::to_string(value));
  }
  void fraction(std::string_view field, double value) {
    if (!(value > 0 && value <= 1)) add(field, "must be above 0 and at most 1, is " + text(value));
  }
  void share(std::string_view field, double value) {
    if (!(value >= 0 && value < 1)) add(field, "must be at least 0 and below 1, is " + text(value));
  }
  void add(std::string_view field, std::string message) {
    problems_.push_back({std::string(field), std::move(message)});
  }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::vector<Problem> problems_;
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

constexpr std::int64_t kNarrowStep = 16;
constexpr double kQueryBlock = 128;
constexpr double kFittedHead = 128;

std::int64_t tile_of(std::int64_t size, std::int64_t tile) {
  return std::min(tile, divide_up(size, kNarrowStep) * kNarrowStep);
}

// The part of the arithmetic units' time that goes into elements of the result: tiles that stick
// out of the matrix and places of the last wave that stay empty are time lost.
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

// What the ramps leave of an attention kernel's fraction of peak.
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
      const MatmulEfficiency& matmul =
          efficiency.matmul_of[static_cast<std::size_t>(kernel.type)].value_or(efficiency.matmul);
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

void check_matmul(const MatmulEfficiency& matmul, const std::string& prefix, Checker& checker) {
  checker.fraction(prefix + "peak_fraction", matmul.peak_fraction);
  checker.at_least_one(prefix + "tile_m", matmul.tile_m);
  checker.at_least_one(prefix + "tile_n", matmul.tile_n);
  checker.at_least_one(prefix + "compute_units", matmul.compute_units);
  checker.not_negative(prefix + "inner_ramp", matmul.inner_ramp);
  checker.fraction(prefix + "accumulating", matmul.accumulating);
  checker.not_negative(prefix + "least_split", static_cast<double>(matmul.least_split));
}

}  // namespace

ChipSpec sustained(const ChipSpec& chip) {
  // Only the 16-bit peaks: the runs that need a slower clock compute in 16 bits; those in fp8 agree
  // with the tables of fp8 kernels as they are (docs/accuracy.md).
  ChipSpec slower = chip;
  for (const DataType type : {DataType::kBf16, DataType::kFp16}) {
    Throughput& peak = slower.peak[static_cast<std::size_t>(type)];
    peak = Throughput(peak.value() * chip.sustained_clock);
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
  for (Throughput& peak : fewer.peak) peak = Throughput(peak.value() * left);
  Efficiency& efficiency = fewer.efficiency;
  for (double& fraction : efficiency.elementwise_of) fraction *= left;
  const auto reserve = [units](MatmulEfficiency& matmul) {
    if (matmul.compute_units > units) matmul.compute_units -= units;
  };
  reserve(efficiency.matmul);
  for (std::optional<MatmulEfficiency>& matmul : efficiency.matmul_of) {
    if (matmul) reserve(*matmul);
  }
  return fewer;
}

std::vector<Problem> check(const ChipSpec& spec) {
  Checker checker;
  for (std::size_t type = 0; type < spec.peak.size(); ++type) {
    const std::string field = "peak." + std::string(name_of(static_cast<DataType>(type)));
    checker.not_negative(field, spec.peak[type].value());
  }
  if (spec.peak_of(DataType::kFp32) == Throughput(0)) {
    checker.add("peak.fp32", "is missing: elementwise kernels compute in fp32");
  }
  checker.positive("memory_bandwidth", spec.memory_bandwidth.value());
  checker.positive("memory_capacity", static_cast<double>(spec.memory_capacity.value()));
  checker.not_negative("launch_overhead", to_seconds(spec.launch_overhead));
  checker.not_negative("fixed_memory", static_cast<double>(spec.fixed_memory.value()));
  if (spec.fixed_memory > spec.memory_capacity) {
    checker.add("fixed_memory", "must not be larger than memory_capacity (" +
                                    std::to_string(spec.memory_capacity.value()) + " bytes), is " +
                                    std::to_string(spec.fixed_memory.value()));
  }
  const Efficiency& efficiency = spec.efficiency;
  check_matmul(efficiency.matmul, "efficiency.matmul.", checker);
  for (std::size_t type = 0; type < spec.peak.size(); ++type) {
    if (!efficiency.matmul_of[type]) continue;
    const std::string field =
        "efficiency.matmul_of." + std::string(name_of(static_cast<DataType>(type)));
    check_matmul(*efficiency.matmul_of[type], field + ".", checker);
  }
  checker.fraction("efficiency.attention_forward_fraction", efficiency.attention_forward_fraction);
  checker.fraction("efficiency.attention_backward_fraction",
                   efficiency.attention_backward_fraction);
  checker.not_negative("efficiency.attention_length_ramp", efficiency.attention_length_ramp);
  checker.not_negative("efficiency.attention_tile_ramp", efficiency.attention_tile_ramp);
  checker.not_negative("efficiency.attention_head_ramp", efficiency.attention_head_ramp);
  checker.fraction("efficiency.elementwise_fraction", efficiency.elementwise_fraction);
  checker.fraction("efficiency.memory_fraction", efficiency.memory_fraction);
  for (std::size_t kind = 0; kind < kElementwiseKinds; ++kind) {
    if (efficiency.elementwise_of[kind] == 0) continue;
    checker.fraction(
        "efficiency.elementwise_of." + std::string(name_of(static_cast<ElementwiseKind>(kind))),
        efficiency.elementwise_of[kind]);
  }
  checker.not_negative("efficiency.memory_ramp",
                       static_cast<double>(efficiency.memory_ramp.value()));
  checker.fraction("sustained_clock", spec.sustained_clock);
  const CommunicationUnits& communication = spec.communication;
  checker.not_negative("communication.units", static_cast<double>(communication.units));
  for (std::size_t type = 0; type < spec.peak.size(); ++type) {
    const std::string name(name_of(static_cast<DataType>(type)));
    checker.not_negative("communication.reduction." + name, communication.reduction[type].value());
  }
  if (communication.fixed) {
    checker.share("communication.compute_share", communication.fixed->compute_share);
    checker.share("communication.memory_share", communication.fixed->memory_share);
  }
  return checker.take();
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
    const double reached =
        chip.efficiency.elementwise_of[static_cast<std::size_t>(kernel.elementwise)];
    if (reached > 0) time.compute_s = std::max(time.compute_s, at_peak / reached);
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
