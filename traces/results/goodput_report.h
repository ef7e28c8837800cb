// The results of `stepsim goodput` as a table for the terminal and as JSON.
//
// The JSON: days {mean, p10, p90, standard_error}, goodput, effective_mfu (null without a model),
// parts_days {productive, checkpoint, lost, restart, repair, degraded}, checkpoint_interval_s,
// failures (of a run), failures_by_class; then what docs/goodput.md lists. energy {kwh,
// standing_kwh, mean_watts, step_watts_per_chip, idle_watts_per_chip, pue, carbon_kg}: null where
// the chip doesn't say its power; carbon_kg: null without --carbon. assumed [{field, value,
// why}...]

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "goodput/energy/run_energy.h"
#include "goodput/goodput.h"
#include "goodput/steps/trained_job.h"
#include "traces/results/result_table.h"

namespace stepsim {

// A value that nobody asked for, and why it holds.
struct AssumedField {
  std::string field{};
  std::string value{};
  std::string why{};
};

// GoodputOutcome is all runs and what belongs into their report.
struct GoodputOutcome {
  // No aggregate: GCC 12 destroys `trained` twice where making `setup` runs out of memory.
  explicit GoodputOutcome(const FailureTable& of) : table(of) {}

  const FailureTable& table;
  std::optional<double> price{};  // of a chip for an hour
  std::string asked{};            // JSON object: what was asked for; empty: not known
  std::string experiment{};       // empty: only the time of a step is given
  std::string chip{};             // likewise
  std::vector<AssumedField> assumed{};
  TrainedJob trained;
  RunSetup setup;
  GoodputResult result{};
  RunPower power{};                       // of `energy`
  std::optional<RunEnergy> energy{};      // unset: the chip doesn't say its power
  TrainingResult sample{};                // the first run, with its spans
  std::vector<CurvePoint> by_interval{};  // empty: not asked for
  std::vector<CurvePoint> by_spares{};
  std::vector<ClassSensitivity> sensitivity{};
  double wall_s = 0;
  double cpu_s = 0;
  std::int64_t peak_rss_bytes = 0;
};

double seconds_of(Ticks ticks);
// nullopt: no price is known.
std::optional<double> cost_of(const GoodputOutcome& outcome);
// nullopt where the step is given.
std::optional<double> effective_mfu(const GoodputOutcome& outcome);
std::optional<double> tokens_per_day(const GoodputOutcome& outcome);

std::string goodput_report(const GoodputOutcome& outcome, bool color);

const ResultTable<GoodputOutcome>& goodput_results();

}  // namespace stepsim
