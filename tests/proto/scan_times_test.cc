// Times of chunked scans against published timings of kernels (tests/reference/models/
// published_scans.csv): keys and values of 128 a head, bf16. docs/workload.md has the comparison;
// no constant was fitted to these rows, and the test holds what it says. Each row is printed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "proto/load_experiment.h"
#include "sim/base/csv_table.h"
#include "sim/chips/chip_spec.h"
#include "tests/support/reference_folder.h"
#include "workload/mixers/chunked_scan.h"

namespace stepsim {
namespace {

StateKind kind_named(std::string_view name) {
  for (const StateKind kind :
       {StateKind::kGatedDelta, StateKind::kKimiDelta, StateKind::kLightning}) {
    if (name_of(kind) == name) return kind;
  }
  ADD_FAILURE() << name;
  return StateKind::kMamba2;
}

double milliseconds(const std::vector<Kernel>& kernels, const ChipSpec& chip) {
  constexpr double kMillisecond = 1e-9;  // durations count picoseconds
  double sum = 0;
  for (const Kernel& kernel : kernels)
    sum += static_cast<double>(time_of(kernel, chip).total.count()) * kMillisecond;
  return sum;
}

double predicted(const CsvTable& table, std::size_t row) {
  const auto size = [&](std::string_view column) {
    return static_cast<std::int64_t>(*table.number(row, column));
  };
  const ScanKernels kernels =
      chunked_scan(DataType::kBf16, {.kind = kind_named(table.at(row, "kind")),
                                     .sequences = size("sequences"),
                                     .tokens = size("tokens"),
                                     .heads = size("heads"),
                                     .groups = size("heads"),
                                     .key_dim = 128,
                                     .value_dim = 128,
                                     .chunk = size("chunk")});
  const bool is_forward = table.at(row, "direction") == "forward";
  return milliseconds(is_forward ? kernels.forward : kernels.backward,
                      load_chip(std::string(table.at(row, "chip"))));
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

TEST(ScanTimesTest, KernelsTakeWhatIsSaidOfThem) {
  const CsvTable table = read_csv((reference_folder() / "models" / "published_scans.csv").string());
  std::map<std::string, std::vector<double>> ratios;
  for (std::size_t row = 0; row < table.records.size(); ++row) {
    const double said = *table.number(row, "milliseconds");
    const double time = predicted(table, row);
    const std::string name = std::string(table.at(row, "kind")) + ", " +
                             std::string(table.at(row, "software")) + ", " +
                             std::string(table.at(row, "direction"));
    std::printf("%-55s %-14s %7s tokens x %s, %s heads: %7.3f ms, published %7.3f (%+.0f %%)\n",
                name.c_str(), std::string(table.at(row, "chip")).c_str(),
                std::string(table.at(row, "tokens")).c_str(),
                std::string(table.at(row, "sequences")).c_str(),
                std::string(table.at(row, "heads")).c_str(), time, said, 100 * (time / said - 1));
    ratios[name].push_back(time / said);
  }
  for (const auto& [name, of] : ratios) {
    std::printf("%-55s median %+.0f %%\n", name.c_str(), 100 * (median(of) - 1));
    EXPECT_GT(median(of), 0.1) << name;
    EXPECT_LT(median(of), 3.0) << name;
  }
}

}  // namespace
}  // namespace stepsim
