// FormulaExperiment puts a statement of the books beside a simulation of what it speaks about.
//
// An experiment is a list of rows, one for each regime: where the formula agrees and where it must
// not. A row says what the formula predicts and within which range the simulation must differ from
// it, BEFORE anything runs; the range is derived in a comment above the row, from the mechanism,
// never taken from a run. A row that is merely "expected to differ" would test nothing.
//
//   // n = 16: the formula moves V, each ring moves (n-1)/n of it: 1/16 less, to rounding.
//   {.id = "split-n16",
//    .formula = "B1",
//    .regime = "axis of 16, every shard cut in two",
//    .predicted = predict("B1", {{"V", 64_MiB}, {"W", 90e9}}),
//    .expected = {-0.0626, -0.0624},
//    .why = "...",
//    .simulate = [](const Laboratory& laboratory) { return laboratory.seconds(...); }}
//
// Experiments stand in the files of their groups (chip.cc, tpu_collectives.cc, ...), each a
// function in experiment_groups.h; experiment_table.cc lists them all. `stepsim validate` runs
// them, and so does a test for each.
//
// Numbers of the sources are used as they print them (FLOPs/s, bandwidths), on chips that reach
// their peak with every kernel, unless the regime is about what they don't reach.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/formulas/expression.h"
#include "analysis/studies/laboratory.h"
#include "analysis/studies/plot.h"

namespace stepsim {

// Of simulated / predicted - 1; both ends belong to it.
struct DifferenceRange {
  double low = 0;
  double high = 0;
};

// Rounding to picoseconds and whole bytes, of steps of 10 ms and more.
inline constexpr double kRounding = 1e-5;
// Rows that are exact but for whole bytes and picoseconds; and sums that were never rounded.
inline constexpr double kExact = 1e-4;
inline constexpr double kToTheLastDigit = 1e-12;

inline DifferenceRange around(double difference, double margin = kRounding) {
  return {difference - margin, difference + margin};
}

struct ExperimentRow {
  std::string id{};       // within the experiment: "split-n16" of S3 is S3.split-n16
  std::string formula{};  // what is predicted: an id of analysis/formulas
  std::string regime{};   // what is simulated, in a few words
  double predicted = 0;
  std::string unit = "s";  // "s", "B", "B/s" are printed with prefixes
  DifferenceRange expected{};
  double tolerance = 0.01;  // of the regime: the formula holds where the difference is within it
  std::string why{};        // the mechanism behind the difference, or why there is none
  std::function<double(const Laboratory&)> simulate{};  // in `unit`
  // Where another network model must come out differently: latency-bandwidth shares no links.
  std::optional<DifferenceRange> expected_unshared{};
  std::optional<DifferenceRange> expected_packets{};
  std::string not_on_packets{};  // why the row says nothing there; empty: it runs
};

// A curve of a sweep: the formula as a line, the simulation as points of the same colour.
struct SweepCurve {
  std::string label{};
  std::function<double(double x)> predict{};                                 // none: no line
  std::function<double(const Laboratory& laboratory, double x)> simulate{};  // none: no points
};

struct Sweep {
  std::string name{};  // of the file: "S5-latency"
  std::string title{};
  std::string subtitle{};
  PlotAxis x{};
  PlotAxis y{};
  std::vector<double> at{};  // where it is simulated
  bool only_there = false;   // the formula too: x is a count, or the curve has corners there
  std::vector<SweepCurve> curves{};
};

struct FormulaExperiment {
  std::string_view id{};      // "S3"
  std::string_view source{};  // who says it: analysis/formulas/sources.h
  std::string_view title{};   // "Ring AllGather on a wrapped axis"
  std::string_view claim{};   // what they say, in a sentence
  std::vector<ExperimentRow> (*rows)() = nullptr;
  std::vector<Sweep> (*sweeps)() = nullptr;
  // Where simulation, hand calculation and the books' readers disagree: who is right, and why.
  std::string_view finding{};
};

// The value of a formula of the table. Throws std::logic_error for one that is not there.
double predict(std::string_view formula, const FormulaValues& values);

}  // namespace stepsim
