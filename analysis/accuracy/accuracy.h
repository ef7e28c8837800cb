// Predicted against measured: the rows of published tables (or of a user's own), each simulated as
// it was run, and how far off they are.
//
//   const CsvTable table = read_csv("collectives.csv");
//   const std::vector<AccuracyRow> rows = predict(table, load_hardware(), {});
//   for (const AccuracySummary& line : summarise(rows)) ...
//
// Three kinds of table, told apart by their header (docs/accuracy.md lists the columns):
// collectives, kernels, training runs. What can't be simulated is a row with the reason, never left
// out.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/accuracy/csv_table.h"
#include "proto/catalog/measured_tables.h"

namespace stepsim {

enum class TableKind : std::uint8_t { kCollectives, kKernels, kTrainingRuns };
std::string_view name_of(TableKind kind);  // "collectives", "kernels", "training runs"

// Nothing if the header is none of the three.
std::optional<TableKind> kind_of(const CsvTable& table);
std::string accepted_headers();

// A message for a table of no kind: the nearest kind, and the columns that it lacks for that one.
// Empty if it has no column of any kind.
std::string missing_columns(const CsvTable& table);

struct AccuracyRow {
  std::string id;  // the table's own, or "<file>:<line>"
  std::string source_id;
  std::string chip;    // the catalog's name; the table's if the catalog has none
  std::string metric;  // "step_time_s", "memory_bytes", "time_s"
  double measured = 0;
  std::optional<double> predicted;
  std::string skipped;  // why there is no prediction

  // predicted / measured - 1. REQUIRES: predicted.
  double relative_error() const { return *predicted / measured - 1; }
};

struct PredictOptions {
  std::string library;                  // in place of the chips' own; empty: those
  std::uint64_t most_ops = 40'000'000;  // training runs of more are skipped: they take minutes
  // Called before each record; false ends the run with SimulationInterrupted. May be empty.
  std::function<bool(std::size_t record, std::size_t records)> progress;
};

// Rows in order of the table; a training run has one for each metric that was measured.
// REQUIRES: kind_of(table).
std::vector<AccuracyRow> predict(const CsvTable& table, const std::vector<Hardware>& hardware,
                                 const PredictOptions& options);

// One line for each source and metric, in order of appearance; only rows with a prediction count.
// If there are several sources, the last lines sum them up, one for each metric.
struct AccuracySummary {
  std::string source_id;  // "all" for all sources
  std::string metric;
  std::size_t rows = 0;
  std::size_t skipped = 0;
  double median_absolute_relative_error = 0;  // 0 where rows is 0
  double p90_absolute_relative_error = 0;     // nearest rank
  double mean_relative_error = 0;
};
std::vector<AccuracySummary> summarise(const std::vector<AccuracyRow>& rows);

// The entry of `hardware` that a name of a table stands for; nothing if there is none.
const Hardware* find_hardware(const std::vector<Hardware>& hardware, std::string_view name);

}  // namespace stepsim
