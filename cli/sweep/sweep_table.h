// The points of a sweep as a table, as JSON, as a picture and as a report. The first three have the
// same bytes whatever ran where: they hold nothing that depends on it.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "books/laboratory/plot.h"
#include "cli/subcommand.h"
#include "cli/sweep/sweep_options.h"

namespace stepsim {

// SweepRow is one point. Cells are as many as sweep_columns(), JSON values each; empty where the
// run has no such value. A point that can't run has a problem and no cells.
struct SweepRow {
  std::int64_t number = 0;
  std::vector<std::string> values{};  // of each path
  std::vector<std::string> cells{};
  std::string problem{};
};

struct SweepTable {
  std::vector<std::string> paths;
  std::vector<SweepRow> rows;  // by number
};

// The columns behind those of the paths: "step_time_s", ...
std::vector<std::string> sweep_columns();

// Returns the cells of a result of `stepsim run --json`.
std::vector<std::string> cells_of_result(std::string_view json);

// How the points came about, for the report.
struct SweepCounts {
  std::uint64_t points = 0;
  std::uint64_t run = 0;
  std::uint64_t stored = 0;   // were there
  std::uint64_t refused = 0;  // can't run
  std::uint64_t missing = 0;  // have not been run, of a merge
  double seconds = 0;
};

std::string sweep_csv(const SweepTable& table);
// `plot`: what a page shows.
std::vector<CommandResult> sweep_command_results();
std::string sweep_json(const SweepTable& table, const SweepPlot& plot);

// Returns a row as sweep_json() has it.
std::string sweep_point_json(const std::vector<std::string>& paths, const SweepRow& row);

std::string sweep_report(const SweepTable& table, const SweepCounts& counts, bool color);

// Throws ConfigError if the values of x are no numbers or quantities.
Plot sweep_plot(const SweepTable& table, const SweepPlot& asked);

}  // namespace stepsim
