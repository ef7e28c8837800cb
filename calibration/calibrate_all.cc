#include "calibration/calibrate_all.h"

#include <map>
#include <optional>
#include <utility>

#include "calibration/calibrate_power.h"
#include "proto/load_experiment.h"
#include "sim/base/parallel.h"

namespace stepsim {
namespace {

struct MatmulTask {
  std::string chip;
  MatmulType type;
  const std::vector<MatmulTiming>* timings;
};

void fit_matmuls(const CalibrationInput& input, std::size_t threads,
                 std::map<std::string, CalibratedChip>& chips) {
  std::vector<MatmulTask> tasks;
  for (const auto& [chip, by_type] : input.matmuls()) {
    for (const auto& [type, timings] : by_type) tasks.push_back({chip, type, &timings});
  }
  std::vector<std::optional<MatmulCalibration>> results(tasks.size());
  for_each_in_parallel(tasks.size(), threads, [&](std::size_t i) {
    results[i] = calibrate_matmuls(*tasks[i].timings, chips.at(tasks[i].chip).chip, tasks[i].type);
  });
  // Values of a type that are its own are not those of `matmul` any more, so their order is none.
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    CalibratedChip& chip = chips.at(tasks[i].chip);
    chip.fits.push_back(std::move(results[i]->calibration));
    if (chip.fits.back().fitted() == 0) continue;
    matmul_entry(chip.chip, tasks[i].type) = results[i]->efficiency;
    chip.matmuls_changed = true;
  }
}

void fit_power(const CalibrationInput& input, const CalibrationOptions& options,
               CalibratedChip& chip, std::vector<std::string>& remarks) {
  if (!chip.chip.power) {
    remarks.push_back("steps on " + chip.name +
                      " tell nothing: its file has no power limit, so its clock never falls");
    return;
  }
  const PredictOptions limits{.library = {},
                              .threads = options.threads,
                              .progress = [&](std::size_t done, std::size_t rows) {
                                if (options.progress) options.progress(done, rows);
                                return true;
                              }};
  auto fitted = calibrate_power(input.steps().at(chip.name), chip.chip, limits);
  if (!fitted) {
    remarks.push_back("no step on " + chip.name + " can be used: see stepsim accuracy --rows");
    return;
  }
  chip.power_changed = fitted->calibration.fitted() > 0;
  chip.chip.power->joules_per_teraflop = fitted->joules_per_teraflop;
  chip.sources_of_steps = fitted->sources;
  chip.fits.push_back(std::move(fitted->calibration));
}

}  // namespace

CalibrationResult calibrate_all(const CalibrationInput& input, const CalibrationOptions& options) {
  CalibrationResult result;
  std::map<std::string, CalibratedChip> chips;
  const auto add = [&](const std::string& name) {
    if (chips.contains(name)) return;
    chips.emplace(name, CalibratedChip{.name = name, .chip = load_chip(name), .fits = {}});
  };
  for (const auto& [name, timings] : input.matmuls()) add(name);
  for (const auto& [name, tables] : input.steps()) add(name);
  fit_matmuls(input, options.threads, chips);
  for (auto& [name, chip] : chips) {
    if (input.steps().contains(name)) fit_power(input, options, chip, result.remarks);
    result.chips.push_back(std::move(chip));
  }
  for (const auto& [name, measured] : input.libraries()) {
    result.libraries.push_back({name, calibrate_library(measured.timings, measured.library)});
  }
  return result;
}

}  // namespace stepsim
