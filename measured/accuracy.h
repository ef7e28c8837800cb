// Predictions against measurements. Each row of a published table (or of a user's own) is simulated
// as it was run, and compared.
//
//   const CsvTable table = read_csv("collectives.csv");
//   const std::vector<AccuracyRow> rows = predict(table, {});
//   for (const AccuracySummary& line : summarise(rows)) ...
//
// Tables are in the program's own keys (docs/measured-tables.md). A row that cannot be simulated is
// kept, with the reason.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/uncertainty.h"
#include "sim/base/csv_table.h"
#include "sim/chips/chip_spec.h"

namespace stepsim {

// Whether a table is one of measurements: it has a column that begins with `measured.`.
bool is_measured_table(const CsvTable& table);

// Returns what is wrong with another table.
std::string_view why_no_table();

struct AccuracyRow {
  std::string id;  // from the table, or "<file>:<line>"
  std::string source_id;
  std::string chip;    // the name in the catalog, or the table's if it is not there
  std::string metric;  // "step_time_s", "memory_bytes", "time_s", "tpot_mean_s", ...
  double measured = 0;
  std::optional<double> predicted;
  std::string skipped;  // why there is no prediction
  // Only training runs have these:
  std::vector<std::string> assumed{};  // "vocab: 51200", where the table says nothing
  std::optional<bool> fits{};          // in the memory of a chip, as predicted
  std::string situation{};             // what makes the prediction uncertain
  std::optional<Interval> interval{};  // where 8 of 10 such figures would lie
  std::string implausible{};  // why the measurement can't be right; empty: it can, or nobody knows
  std::string grade{};        // how much the source says: "A" to "C"

  // Returns predicted / measured - 1. REQUIRES: predicted.
  double relative_error() const { return *predicted / measured - 1; }
};

struct PredictOptions {
  std::string library{};  // replaces the chips' own library; empty: keep it
  std::uint64_t most_ops =
      40'000'000;                // training runs with more that have to be simulated are skipped
  std::size_t threads = 1;       // at least 1; the rows are the same with any number
  std::string serving_plan{};    // keys that the plans of serving runs get: "expert_spread=20"
  std::string serving_engine{};  // keys that their engines get: "host-time=1ms"
  // Changes the chip of each training run before it is simulated, from any thread. May be empty.
  std::function<void(ChipSpec& chip)> change_chip{};
  // Called when records are done, one call at a time, but from any thread. Returning false ends the
  // run with SimulationInterrupted. May be empty.
  std::function<bool(std::size_t done, std::size_t records)> progress{};
  // Asked by every thread while it simulates a run, and ends the work likewise.
  std::function<bool()> goes_on{};
  // Asked before each record, and where goes_on() has ended one: if true, the records that are not
  // done are skipped as interrupted, and those that are come back. May be empty.
  std::function<bool()> is_ended{};
};

// Returns rows in the order of the table. A run has one row per measured metric. REQUIRES:
// is_measured_table(table).
std::vector<AccuracyRow> predict(const CsvTable& table, const PredictOptions& options);

// AccuracySummary sums up one metric of one source, in order of appearance. Only rows with a
// prediction and a plausible measurement count. Under-specified rows (grade C) have lines of their
// own. If there are several sources, the last lines sum up all of them, one line per metric.
struct AccuracySummary {
  std::string source_id;  // "all" for all sources
  std::string metric;
  bool under_specified = false;  // rows of grade C
  std::size_t rows = 0;
  std::size_t skipped = 0;
  std::size_t implausible = 0;
  double median_absolute_relative_error = 0;  // 0 where rows is 0
  double p90_absolute_relative_error = 0;     // nearest rank
  double mean_relative_error = 0;
  std::optional<double> covered{};  // share of the rows in their interval; unset: none has one
};
std::vector<AccuracySummary> summarise(const std::vector<AccuracyRow>& rows);

}  // namespace stepsim
