// Study compares a statement of the books with simulations of it.
//
// A study is a list of rows, one for each regime: some where the formula holds, some where it must
// not. A row says what the formula predicts, and in which range the difference of the simulation
// must be, BEFORE anything runs. A comment above the row derives the range from the mechanism; it
// is never taken from a run. A row that is merely "expected to differ" would test nothing.
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
// Studies are in the files of their groups (chip.cc, tpu_collectives.cc, ...). Each file is a
// function in study_groups.h, and study_table.cc lists them all. `stepsim validate` runs the
// studies, and so does a test for each.
//
// The sources' numbers (FLOP/s, bandwidths) are used as printed, on chips that reach their peak
// with every kernel. Regimes about efficiency say so if they differ.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "books/formulas/expression.h"
#include "books/laboratory/laboratory.h"
#include "books/laboratory/plot.h"

namespace stepsim {

// DifferenceRange is a range of simulated / predicted - 1, with both ends included.
struct DifferenceRange {
  double low = 0;
  double high = 0;
};

// The relative error of rounding to picoseconds and whole bytes, for steps of 10 ms and more.
inline constexpr double kRounding = 1e-5;
// The margin for rows that are exact except for whole bytes and picoseconds, and for sums that are
// never rounded.
inline constexpr double kExact = 1e-4;
inline constexpr double kToTheLastDigit = 1e-12;

inline DifferenceRange around(double difference, double margin = kRounding) {
  return {difference - margin, difference + margin};
}

struct StudyRow {
  std::string id{};       // id within the study: "split-n16" of S3 is S3.split-n16
  std::string formula{};  // id of the predicting formula in books/formulas
  std::string regime{};   // what is simulated, in a few words
  double predicted = 0;
  std::string unit = "s";  // "s", "B", "B/s" are printed with prefixes
  DifferenceRange expected{};
  double tolerance = 0.01;  // the formula holds if the difference is within this
  std::string why{};        // the mechanism behind the difference, or why there is none
  std::function<double(const Laboratory&)> simulate{};  // in `unit`
  // Ranges on other network models, if they differ. The latency-bandwidth model shares no links:
  std::optional<DifferenceRange> expected_unshared{};
  std::optional<DifferenceRange> expected_packets{};
  std::string not_on_packets{};  // why the row does not run on packets; empty: it runs
};

// SweepCurve is a curve of a sweep: the formula as a line, the simulation as points in the same
// colour.
struct SweepCurve {
  std::string label{};
  std::function<double(double x)> predict{};                                 // none: no line
  std::function<double(const Laboratory& laboratory, double x)> simulate{};  // none: no points
};

// Write `.x = PlotAxis{...}`: GCC 12 destroys an axis of bare braces twice if a later member
// throws.
struct Sweep {
  std::string name{};  // name of the file: "S5-latency"
  std::string title{};
  std::string subtitle{};
  PlotAxis x{};
  PlotAxis y{};
  std::vector<double> at{};  // values of x that are simulated
  bool only_there = false;   // the line is drawn only at these x: counts or corners
  std::vector<SweepCurve> curves{};
};

struct Study {
  std::string_view id{};      // "S3"
  std::string_view source{};  // the document with the statement: books/formulas/sources.h
  std::string_view title{};   // "Ring AllGather on a wrapped axis"
  std::string_view claim{};   // the statement in one sentence
  std::vector<StudyRow> (*rows)() = nullptr;
  std::vector<Sweep> (*sweeps)() = nullptr;
  // Explains who is right and why, if simulation, hand calculation and readers of the books
  // disagree.
  std::string_view finding{};
};

// Returns the value of a formula of the table. Throws std::logic_error if there is no such formula.
double predict(std::string_view formula, const FormulaValues& values);

}  // namespace stepsim
