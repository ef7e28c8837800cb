#include "calibration/calibrate_matmuls.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace stepsim {
namespace {

constexpr double kWeightOfLarge = 1.6;
constexpr std::int64_t kManyRows = 1024;
constexpr double kMicrosecond = 1e-6;
constexpr double kNanosecond = 1e-9;
constexpr double kTerabyte = 1e12;
// Where a search begins if the chip has no such value: a GPU's.
constexpr double kUsualOperandRate = 14;  // TB/s

// A constant of matmuls, and how it is put into the efficiency.
struct MatmulConstant {
  Constant constant;
  void (*set)(MatmulEfficiency& efficiency, double value);
};

Duration microseconds_of(double value) {
  return duration_from_seconds(value * kMicrosecond);
}

std::vector<MatmulConstant> compute_constants(const MatmulEfficiency& now) {
  const double rate =
      now.operand_bandwidth ? now.operand_bandwidth->value() / kTerabyte : kUsualOperandRate;
  return {{{.name = "peak_fraction",
            .unit = {},
            .value = now.peak_fraction,
            .least = 0.05,
            .most = 1,
            .scale = 0.5,
            .begins_at = {0.72, 0.95},
            .needs = "large matmuls"},
           [](MatmulEfficiency& to, double value) { to.peak_fraction = value; }},
          {{.name = "tile_overhead",
            .unit = {},
            .value = now.tile_overhead,
            .least = 0,
            .most = 20,
            .scale = 0.1,
            .begins_at = {0.05, 0.4},
            .needs = "matmuls for which small tiles are best"},
           [](MatmulEfficiency& to, double value) { to.tile_overhead = value; }},
          {{.name = "last_wave",
            .unit = {},
            .value = now.last_wave,
            .least = 0,
            .most = 1,
            .scale = 0.5,
            .needs = "matmuls of a few waves of tiles"},
           [](MatmulEfficiency& to, double value) { to.last_wave = value; }},
          {{.name = "inner_ramp",
            .unit = {},
            .value = now.inner_ramp,
            .least = 0,
            .most = 3000,
            .scale = 100,
            .needs = "several inner dimensions k, short ones too"},
           [](MatmulEfficiency& to, double value) { to.inner_ramp = value; }},
          {{.name = "operand_bandwidth",
            .unit = "TB/s",
            .value = rate,
            .is_set = now.operand_bandwidth.has_value(),
            .least = 0.5,
            .most = 100,
            .scale = 1,
            .begins_at = {3, 8, 14, 28},
            .needs = "matmuls of few rows or columns and a long inner dimension"},
           [](MatmulEfficiency& to, double value) {
             to.operand_bandwidth = Bandwidth(value * kTerabyte);
           }},
          {{.name = "step_time",
            .unit = "ns",
            .value = to_seconds(now.step_time) / kNanosecond,
            .least = 0,
            .most = 500,
            .scale = 20,
            .needs = "matmuls of few rows and columns and a long inner dimension"},
           [](MatmulEfficiency& to, double value) {
             to.step_time = duration_from_seconds(value * kNanosecond);
           }}};
}

MatmulConstant memory_constant(const MatmulEfficiency& now, const ChipSpec& chip) {
  return {{.name = "memory_fraction",
           .unit = {},
           .value = now.memory_fraction.value_or(chip.efficiency.memory_fraction),
           .is_set = now.memory_fraction.has_value(),
           .least = 0.05,
           .most = 1,
           .scale = 0.5,
           .needs = "matmuls of few rows (m of 1 to 64)"},
          [](MatmulEfficiency& to, double value) { to.memory_fraction = value; }};
}

MatmulConstant start_constant(const MatmulEfficiency& now, const ChipSpec& chip) {
  return {{.name = "start",
           .unit = "us",
           .value = to_seconds(now.start.value_or(chip.launch_overhead)) / kMicrosecond,
           .is_set = now.start.has_value(),
           .least = 0,
           .most = 50,
           .scale = 1,
           .needs = "small matmuls"},
          [](MatmulEfficiency& to, double value) { to.start = microseconds_of(value); }};
}

MatmulConstant split_constant(const MatmulEfficiency& now, const ChipSpec& chip) {
  const double start = to_seconds(now.start.value_or(chip.launch_overhead)) / kMicrosecond;
  return {{.name = "split_start",
           .unit = "us",
           .value = now.split_start ? to_seconds(*now.split_start) / kMicrosecond : start / 2,
           .is_set = now.split_start.has_value(),
           .least = 0,
           .most = 50,
           .scale = 1,
           .needs = "matmuls of few rows and columns and a long inner dimension"},
          [](MatmulEfficiency& to, double value) { to.split_start = microseconds_of(value); }};
}

std::vector<MatmulConstant> quantize_constants(const MatmulEfficiency& now) {
  return {{{.name = "quantize_start",
            .unit = "us",
            .value = to_seconds(now.quantize_start) / kMicrosecond,
            .least = 0,
            .most = 50,
            .scale = 1,
            .needs = "small matmuls"},
           [](MatmulEfficiency& to, double value) { to.quantize_start = microseconds_of(value); }},
          {{.name = "quantize_bytes",
            .unit = {},
            .value = now.quantize_bytes,
            .least = 0.5,
            .most = 12,
            .scale = 1,
            .needs = "matmuls of many rows and few columns"},
           [](MatmulEfficiency& to, double value) { to.quantize_bytes = value; }}};
}

std::vector<MatmulConstant> constants_for(const MatmulEfficiency& now, const ChipSpec& chip,
                                          bool with_quantization) {
  std::vector<MatmulConstant> all = compute_constants(now);
  all.push_back(memory_constant(now, chip));
  if (with_quantization) {
    for (MatmulConstant& one : quantize_constants(now)) all.push_back(std::move(one));
  } else {
    all.push_back(start_constant(now, chip));
  }
  all.push_back(split_constant(now, chip));
  return all;
}

void apply(const std::vector<MatmulConstant>& constants, std::span<const double> values,
           MatmulEfficiency& efficiency) {
  for (std::size_t i = 0; i < constants.size(); ++i) {
    if (values[i] != constants[i].constant.value) constants[i].set(efficiency, values[i]);
  }
}

// Returns where searches begin: one in every combination of the constants' own beginnings.
std::vector<std::vector<double>> starts_of(const std::vector<Constant>& constants) {
  std::vector<std::vector<double>> starts(1);
  for (const Constant& constant : constants) {
    const std::vector<double> own =
        constant.begins_at.empty() ? std::vector{constant.value} : constant.begins_at;
    std::vector<std::vector<double>> longer;
    for (const std::vector<double>& start : starts) {
      for (const double value : own) longer.push_back(start), longer.back().push_back(value);
    }
    starts = std::move(longer);
  }
  return starts;
}

FitPoint point_of(const MatmulTiming& timing) {
  const Kernel& kernel = *timing.kernel.kernel;
  return {.shape = fmt::format("{} {} {} {}", kernel.m, kernel.n, kernel.k,
                               timing.kernel.quantized.has_value()),
          .seconds = timing.seconds,
          .weight = kernel.m >= kManyRows ? kWeightOfLarge : 1};
}

}  // namespace

std::string name_of(const MatmulType& type) {
  std::string name(name_of(type.type));
  if (type.weights) name += fmt::format(" with {} weights", name_of(*type.weights));
  return name;
}

MatmulEfficiency& matmul_entry(ChipSpec& chip, const MatmulType& type) {
  Efficiency& efficiency = chip.efficiency;
  for (MatmulEfficiency& one : efficiency.matmul_of) {
    if (one.type == type.type && one.weights == type.weights) return one;
  }
  if (bits_of(type.type) == 16 && !type.weights) return efficiency.matmul;
  MatmulEfficiency added = efficiency.matmul_for(type.type, type.weights);
  added.type = type.type;
  added.weights = type.weights;
  efficiency.matmul_of.push_back(added);
  return efficiency.matmul_of.back();
}

MatmulCalibration calibrate_matmuls(const std::vector<MatmulTiming>& timings, const ChipSpec& chip,
                                    const MatmulType& type) {
  ChipSpec tried = chip;
  MatmulEfficiency& entry = matmul_entry(tried, type);
  const MatmulEfficiency now = entry;
  const bool with_quantization = std::ranges::any_of(
      timings, [](const MatmulTiming& timing) { return timing.kernel.quantized.has_value(); });
  const std::vector<MatmulConstant> constants = constants_for(now, chip, with_quantization);

  FitProblem problem;
  for (const MatmulConstant& one : constants) problem.constants.push_back(one.constant);
  for (const MatmulTiming& timing : timings) problem.points.push_back(point_of(timing));
  problem.starts = starts_of(problem.constants);
  problem.seconds = [&](std::span<const double> values, std::size_t point) {
    entry = now;
    apply(constants, values, entry);
    return to_seconds(time_of(timings[point].kernel, tried));
  };
  hold_out_a_fifth(problem.points);
  const FitResult result = fit(problem);
  Calibration calibration =
      calibrate(fmt::format("{} matmuls on {}", name_of(type), chip.name), problem, result);
  const auto many_rows = [&](std::size_t i) { return timings[i].kernel.kernel->m >= kManyRows; };
  calibration.errors.push_back(errors_of("m of 1,024 and more", problem, result, many_rows));
  MatmulEfficiency efficiency = now;
  apply(constants, result.values, efficiency);
  return {.efficiency = efficiency, .calibration = std::move(calibration)};
}

}  // namespace stepsim
