// CarbonTable says how many grams of carbon dioxide a kilowatt-hour costs, over time:
//
//   a number      the same at all times: --carbon 380
//   hour,...      24 hours, 0 to 23, in any order. Each day is alike; the run begins at hour 0
//   date,...      dates, ascending: 2025-01-31, or with a time of day, 2025-01-31T13:00. A row
//   holds
//                 until the next one, the last as long as the row before it held (a lone one a
//                 day). The run begins at the first
//
// The file is a CSV with one of these columns and `grams_per_kwh`; others are ignored. Grams: 0 to
// 10,000. All dates are in one time zone: there are no offsets and no leap seconds.

#pragma once

#include <limits>
#include <string>
#include <vector>

#include "sim/base/csv_table.h"
#include "sim/base/error.h"

namespace stepsim {

inline constexpr double kMostGrams = 10'000;  // the worst coal plants emit 1,500

struct CarbonTable {
  struct Row {
    double from_hours = 0;  // since the begin of the run
    double grams = 0;       // of a kilowatt-hour
  };
  std::vector<Row> rows{};  // ascending, the first at 0
  double end_hours = 1;     // of the last row
  bool repeats = true;      // from the start again
};

CarbonTable constant_carbon(double grams);

// Adds all problems, each under the file and its line.
CarbonTable carbon_of(const CsvTable& table, std::vector<Problem>& problems);

// Returns for how many hours the table holds: infinity if it repeats.
double hours_of(const CarbonTable& table);

// Returns the mean grams of a kilowatt-hour in the first hours. REQUIRES: 0 < hours <= hours_of().
double mean_grams(const CarbonTable& table, double hours);

}  // namespace stepsim
