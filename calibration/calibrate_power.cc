#include "calibration/calibrate_power.h"

#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace stepsim {
namespace {

constexpr std::array kEnergies = {0.5, 0.7, 1.0, 1.4, 2.0};  // of the present one

// The step times of one run, by energy.
using StepTimes = std::array<double, kEnergies.size()>;

double between(const StepTimes& times, double energy) {
  std::size_t high = 1;
  while (high + 1 < kEnergies.size() && energy > kEnergies[high]) ++high;
  const double part = (energy - kEnergies[high - 1]) / (kEnergies[high] - kEnergies[high - 1]);
  return times[high - 1] + part * (times[high] - times[high - 1]);
}

struct MeasuredSteps {
  std::vector<FitPoint> points;
  std::vector<StepTimes> times;
  std::set<std::string> sources;
};

bool is_usable(const AccuracyRow& row, const ChipSpec& chip) {
  return row.predicted && row.metric == "step_time_s" && row.implausible.empty() &&
         row.grade != "C" && row.chip == chip.name;
}

std::vector<AccuracyRow> rows_with(const CsvTable& table, const ChipSpec& chip, double energy,
                                   PredictOptions options) {
  options.change_chip = [&](ChipSpec& other) {
    if (other.name != chip.name) return;
    other.efficiency.matmul = chip.efficiency.matmul;
    other.efficiency.matmul_of = chip.efficiency.matmul_of;
    if (other.power) other.power->joules_per_teraflop = energy * chip.power->joules_per_teraflop;
  };
  return predict(table, options);
}

void add_steps(const CsvTable& table, const ChipSpec& chip, const PredictOptions& options,
               MeasuredSteps& steps) {
  std::array<std::vector<AccuracyRow>, kEnergies.size()> rows;
  for (std::size_t i = 0; i < kEnergies.size(); ++i) {
    rows[i] = rows_with(table, chip, kEnergies[i], options);
  }
  for (std::size_t row = 0; row < rows.front().size(); ++row) {
    StepTimes times{};
    bool is_used = true;
    for (std::size_t i = 0; i < kEnergies.size(); ++i) {
      is_used = is_used && is_usable(rows[i][row], chip);
      times[i] = rows[i][row].predicted.value_or(0);
    }
    if (!is_used) continue;
    const AccuracyRow& one = rows.front()[row];
    steps.points.push_back({.shape = one.source_id + " " + one.id, .seconds = one.measured});
    steps.times.push_back(times);
    steps.sources.insert(one.source_id);
  }
}

}  // namespace

std::optional<PowerCalibration> calibrate_power(const std::vector<CsvTable>& tables,
                                                const ChipSpec& chip,
                                                const PredictOptions& options) {
  MeasuredSteps steps;
  for (const CsvTable& table : tables) add_steps(table, chip, options, steps);
  if (steps.points.empty()) return std::nullopt;
  const double now = chip.power->joules_per_teraflop;
  FitProblem problem;
  problem.constants = {{.name = "joules_per_teraflop",
                        .unit = {},
                        .value = now,
                        .least = kEnergies.front() * now,
                        .most = kEnergies.back() * now,
                        .scale = now,
                        .needs = "steps of large matmuls, which the power limit slows"}};
  problem.points = std::move(steps.points);
  problem.seconds = [&](std::span<const double> values, std::size_t point) {
    return between(steps.times[point], values.front() / now);
  };
  hold_out_a_fifth(problem.points);
  const FitResult result = fit(problem);
  return PowerCalibration{.joules_per_teraflop = result.values.front(),
                          .calibration = calibrate("steps on " + chip.name, problem, result),
                          .sources = steps.sources.size()};
}

}  // namespace stepsim
