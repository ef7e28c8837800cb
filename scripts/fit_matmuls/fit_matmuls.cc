// Fits the matmul constants of a chip and type (sim/chips/matmul_model.h) to a table of timings,
// and prints them as a chip's file has them, with the errors of the rows and of the fifth that is
// left out.
//
//   g++ -O2 -std=c++20 -I. scripts/fit_matmuls/fit_matmuls.cc sim/chips/matmul_model.cc
//     sim/chips/kernel.cc sim/base/units.cc -lnlopt -o fit_matmuls   (Debian: libnlopt-cxx-dev)
//   ./fit_matmuls TABLE.csv DTYPE PEAK_TFLOPS MEMORY_GBPS UNITS [START_US]
//
// TABLE.csv has the columns op (gemm), dtype, m, n, k and time_us. Without START_US the start is
// fitted, as it was for 16 bits; with it, the kernel that makes the operands narrow is (other
// types). The sum of the logarithms of predicted / measured is minimised without their signs; rows
// of 1,024 and more weigh 1.6.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlopt.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/chips/kernel.h"
#include "sim/chips/matmul_model.h"

namespace {

using stepsim::Bandwidth;
using stepsim::Bytes;
using stepsim::DataType;
using stepsim::Kernel;
using stepsim::MatmulEfficiency;

struct Timing {
  Kernel kernel;
  double seconds = 0;
  double values = 0;  // of the first operand, which are made narrow
  bool left_out = false;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '"') {
      cells.back() += c;
    }
  }
  return cells;
}

DataType type_of(const std::string& name) {
  static const std::map<std::string, DataType> kTypes = {
      {"bfloat16", DataType::kBf16}, {"fp16/bf16", DataType::kBf16}, {"sq", DataType::kInt8}};
  for (int type = 0; type < stepsim::kDataTypes; ++type) {
    if (name_of(static_cast<DataType>(type)) == name) return static_cast<DataType>(type);
  }
  return kTypes.at(name);
}

std::vector<Timing> read(const std::string& path, const std::string& dtype) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::map<std::string, std::size_t> column;
  for (const std::string& name : cells_of(line)) column.emplace(name, column.size());
  std::vector<Timing> timings;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    const auto number = [&](const char* name) { return std::atof(cells[column[name]].c_str()); };
    if (!cells[column["op"]].starts_with("gemm") || cells[column["dtype"]] != dtype) continue;
    Timing timing;
    timing.seconds = number("time_us") * 1e-6;
    Kernel& kernel = timing.kernel;
    kernel.kind = stepsim::KernelKind::kMatmul;
    kernel.type = type_of(dtype);
    kernel.batch = 1;
    kernel.m = std::llround(number("m"));
    kernel.n = std::llround(number("n"));
    kernel.k = std::llround(number("k"));
    kernel.flops = stepsim::Flops(2.0 * number("m") * number("n") * number("k"));
    kernel.read = bytes_of(kernel.m * kernel.k + kernel.k * kernel.n, kernel.type);
    kernel.written = Bytes(2 * kernel.m * kernel.n);
    timing.values = number("m") * number("k");
    auto hash = static_cast<unsigned>(kernel.m * 7 + kernel.n * 13 + kernel.k * 29);
    hash = (hash ^ (hash >> 7)) * 2654435761U;
    timing.left_out = (hash ^ (hash >> 15)) % 5 == 0;
    timings.push_back(timing);
  }
  return timings;
}

class Fit {
 public:
  Fit(std::vector<Timing> timings, double peak, double bandwidth, std::int64_t units,
      std::optional<double> start_us)
      : timings_(std::move(timings)), bandwidth_(bandwidth), units_(units), start_us_(start_us) {
    chip_ = {.peak = peak, .bandwidth = bandwidth};
  }

  // start or quantize_start (us), peak, memory, inner_ramp, tile_overhead, operands (TB/s),
  // quantize_bytes
  MatmulEfficiency efficiency(const std::vector<double>& x) const {
    MatmulEfficiency result{.peak_fraction = x[1],
                            .tile_m = 128,
                            .tile_n = 256,
                            .smaller_tiles = true,
                            .tile_overhead = x[4],
                            .compute_units = units_,
                            .inner_ramp = x[3],
                            .least_split = 256};
    result.operand_bandwidth = Bandwidth(x[5] * 1e12);
    result.memory_fraction = x[2];
    result.start = stepsim::duration_from_seconds((start_us_ ? *start_us_ : x[0]) * 1e-6);
    return result;
  }

  double error(const Timing& timing, const std::vector<double>& x) const {
    const MatmulEfficiency how = efficiency(x);
    const auto time = stepsim::time_of_matmul(timing.kernel, how, chip_);
    double seconds = std::max(time.compute_s, time.memory_s) + to_seconds(time.start);
    if (start_us_) seconds += x[0] * 1e-6 + timing.values * x[6] / (bandwidth_ * x[2]);
    return std::abs(std::log(seconds / timing.seconds));
  }

  // The search ends in the nearest hollow, so it begins in many places.
  static std::vector<std::vector<double>> starts() {
    std::vector<std::vector<double>> all;
    for (const double operands : {3.0, 8.0, 14.0, 28.0}) {
      for (const double peak : {0.72, 0.95}) {
        for (const double overhead : {0.05, 0.4}) {
          all.push_back({3, peak, 0.8, 100, overhead, operands, 3});
        }
      }
    }
    return all;
  }

  std::vector<double> best() {
    std::vector<double> best;
    double least = 1e9;
    for (std::vector<double> x : starts()) {
      nlopt::opt search(nlopt::LN_SBPLX, 7);
      search.set_lower_bounds({0, 0.3, 0.3, 0, 0, 1, 0.5});
      search.set_upper_bounds({15, 1, 1, 3000, 20, 60, 12});
      search.set_min_objective(&Fit::objective, this);
      search.set_maxeval(3000);
      search.set_ftol_rel(1e-5);
      double value = 0;
      search.optimize(x, value);
      if (value >= least) continue;
      least = value;
      best = x;
    }
    return best;
  }

  void print_errors(const char* name, const std::vector<double>& x, bool left_out) const {
    std::vector<double> errors;
    for (const Timing& timing : timings_) {
      if (timing.left_out == left_out) errors.push_back(std::expm1(error(timing, x)));
    }
    std::ranges::sort(errors);
    std::cout << "# " << name << ": " << errors.size() << " rows, median "
              << 100 * errors[errors.size() / 2] << " %, 90th percentile "
              << 100 * errors[errors.size() * 9 / 10] << " %\n";
  }

 private:
  static double objective(const std::vector<double>& x, std::vector<double>&, void* self) {
    const Fit& fit = *static_cast<const Fit*>(self);
    double sum = 0, weights = 0;
    for (const Timing& timing : fit.timings_) {
      if (timing.left_out) continue;
      const double weight = timing.kernel.m >= 1024 ? 1.6 : 1;
      const double error = fit.error(timing, x);
      sum += weight * (error + 0.5 * error * error / (0.1 + error));
      weights += weight;
    }
    return sum / weights;
  }

  std::vector<Timing> timings_;
  double bandwidth_;
  std::int64_t units_;
  std::optional<double> start_us_;
  stepsim::MatmulChip chip_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 6) {
    std::cerr << "usage: fit_matmuls TABLE.csv DTYPE PEAK_TFLOPS MEMORY_GBPS UNITS [START_US]\n";
    return 2;
  }
  std::optional<double> start_us;
  if (count > 6) start_us = std::atof(arguments[6]);
  std::vector<Timing> timings = read(arguments[1], arguments[2]);
  if (timings.size() < 40) {
    std::cerr << arguments[1] << " has " << timings.size() << " matmuls of type " << arguments[2]
              << "; seven constants need 40\n";
    return 2;
  }
  Fit fit(std::move(timings), std::atof(arguments[3]) * 1e12, std::atof(arguments[4]) * 1e9,
          std::atoll(arguments[5]), start_us);
  const std::vector<double> x = fit.best();
  fit.print_errors("fitted", x, false);
  fit.print_errors("left out", x, true);
  std::cout << "peak_fraction: " << x[1]
            << " tile_m: 128 tile_n: 256 smaller_tiles: true tile_overhead: " << x[4]
            << "\ncompute_units: " << arguments[5] << " inner_ramp: " << x[3]
            << " least_split: 256 operand_bandwidth: \"" << x[5]
            << "TB/s\"\nmemory_fraction: " << x[2];
  if (start_us) {
    std::cout << " quantize_start: \"" << x[0] << "us\" quantize_bytes: " << x[6] << "\n";
  } else {
    std::cout << " start: \"" << x[0] << "us\"\n";
  }
}
