#include "cli/calibrate/trace_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "import/trace/trace_measurements.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kFewestLaunches = 40;

bool is_trace(const std::string& file) {
  const std::string_view last = split_text(file, ',').back();
  std::error_code error;
  return last.ends_with(".json") || last.ends_with(".json.gz") ||
         std::filesystem::is_directory(file, error);
}

// The device where tables know it, what --hardware says otherwise; nullptr: neither is known.
const Hardware* hardware_of(const std::string& device, const CalibrationInput& input,
                            const CalibrationChoice& choice) {
  const Hardware* const named = find_hardware(input.hardware(), device);
  return named != nullptr ? named : find_hardware(input.hardware(), choice.facts.hardware);
}

void add_column(CsvTable& table, const std::string& name, const std::string& value) {
  table.header.push_back(name);
  for (std::vector<std::string>& record : table.records) record.push_back(value);
}

double part_of(std::vector<std::int64_t> sorted, std::size_t parts) {
  return 1e-9 * static_cast<double>(sorted[(sorted.size() - 1) / parts]);
}

std::optional<LaunchCost> launch_cost(const std::vector<std::int64_t>& gaps) {
  std::vector<std::int64_t> fitted;
  std::vector<std::int64_t> held_out;
  for (std::size_t i = 0; i < gaps.size(); ++i) (i % 5 == 4 ? held_out : fitted).push_back(gaps[i]);
  if (gaps.size() < kFewestLaunches) return std::nullopt;
  std::ranges::sort(fitted);
  std::ranges::sort(held_out);
  return LaunchCost{.seconds = part_of(fitted, 4),
                    .median = part_of(fitted, 2),
                    .held_out = part_of(held_out, 4),
                    .launches = gaps.size()};
}

}  // namespace

TraceTables read_trace_tables(const std::vector<std::string>& files, const CalibrationInput& input,
                              const CalibrationChoice& choice, std::vector<Problem>& problems) {
  TraceTables read;
  std::vector<std::int64_t> gaps;
  bool has_traces = false;
  for (const std::string& file : files) {
    if (!is_trace(file)) {
      read.files.push_back(file);
      continue;
    }
    has_traces = true;
    std::vector<std::string> paths;
    for (const std::string_view path : split_text(file, ',')) paths.emplace_back(path);
    TraceMeasurements measured = measure_trace(paths, problems);
    const Hardware* const hardware = hardware_of(measured.device, input, choice);
    if (hardware == nullptr && problems.empty()) {
      problems.push_back({file, measured.device.empty()
                                    ? "does not say on what it ran: --hardware does"
                                    : "ran on " + measured.device +
                                          ", which tables don't know: --hardware says "
                                          "which chip that is"});
    }
    const std::int64_t nodes = choice.facts.nodes.value_or(1);
    add_column(measured.kernels, "chip", hardware == nullptr ? "" : hardware->chip);
    add_column(
        measured.collectives, "cluster",
        choice.facts.cluster.empty() ? cluster_of_ranks(hardware, nodes) : choice.facts.cluster);
    add_column(measured.collectives, "nodes", std::to_string(nodes));
    for (CsvTable* table : {&measured.kernels, &measured.collectives}) {
      if (table->records.empty()) continue;
      const bool is_of_kernels = table == &measured.kernels;
      read.tables.push_back(
          {file, is_of_kernels ? "matmuls of a trace" : "collectives of a trace", *table});
    }
    read.unused.insert(read.unused.end(), measured.unused.begin(), measured.unused.end());
    gaps.insert(gaps.end(), measured.launches.nanoseconds.begin(),
                measured.launches.nanoseconds.end());
  }
  read.launch = launch_cost(gaps);
  if (read.launch) {
    const LaunchCost& launch = *read.launch;
    const auto text = [](double seconds) { return to_text(duration_from_seconds(seconds)); };
    read.remarks.push_back(
        fmt::format("A launch costs the host {}: a quarter of {} that follow one another without a "
                    "wait for the chip (held out: {}); half take {}. A run takes it as\n  --set "
                    "software.host_launch_cost={:.3g}us",
                    text(launch.seconds), launch.launches, text(launch.held_out),
                    text(launch.median), 1e6 * launch.seconds));
  } else if (has_traces) {
    read.remarks.push_back(
        fmt::format("{} launches follow one another without a wait for the chip: too few to tell "
                    "what one costs the host ({})",
                    gaps.size(), kFewestLaunches));
  }
  return read;
}

}  // namespace stepsim
