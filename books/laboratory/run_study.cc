#include "books/laboratory/run_study.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "books/formulas/formula_table.h"

namespace stepsim {
namespace {

constexpr int kLinePoints = 96;

// Returns where to draw the formula: at the simulated points and evenly between them.
std::vector<double> places_of_line(const Sweep& sweep) {
  std::vector<double> places = sweep.at;
  if (sweep.only_there || places.size() < 2) return places;
  const auto [low, high] = std::ranges::minmax(sweep.at);
  for (int i = 1; i < kLinePoints; ++i) {
    const double share = static_cast<double>(i) / kLinePoints;
    places.push_back(sweep.x.log ? low * std::pow(high / low, share) : low + share * (high - low));
  }
  std::ranges::sort(places);
  return places;
}

}  // namespace

double predict(std::string_view formula, const FormulaValues& values) {
  const Formula* const found = find_formula(formula);
  if (found == nullptr) throw std::logic_error("no formula " + std::string(formula));
  return evaluate(*found, values).value;
}

std::string row_id(const Study& study, const StudyRow& row) {
  return std::string(study.id) + "." + row.id;
}

DifferenceRange expected_range(const StudyRow& row, Fidelity fidelity) {
  if (fidelity == Fidelity::kLatencyBandwidth) return row.expected_unshared.value_or(row.expected);
  if (fidelity == Fidelity::kPacket) return row.expected_packets.value_or(row.expected);
  return row.expected;
}

RowOutcome run_row(const Study& study, const StudyRow& row, const Laboratory& laboratory) {
  RowOutcome outcome{.id = row_id(study, row),
                     .fidelity = laboratory.fidelity,
                     .expected = expected_range(row, laboratory.fidelity),
                     .simulated = std::nullopt};
  if (laboratory.fidelity == Fidelity::kPacket && !row.not_on_packets.empty()) {
    outcome.skipped = row.not_on_packets;
    return outcome;
  }
  try {
    outcome.simulated = row.simulate(laboratory);
  } catch (const StudySkipped& skipped) {
    outcome.skipped = skipped.what();
    return outcome;
  }
  outcome.difference = *outcome.simulated / row.predicted - 1;
  outcome.as_expected =
      outcome.difference >= outcome.expected.low && outcome.difference <= outcome.expected.high;
  outcome.holds = std::abs(outcome.difference) <= row.tolerance;
  return outcome;
}

Plot run_sweep(const Sweep& sweep, const Laboratory& laboratory) {
  Plot plot{.title = sweep.title, .subtitle = sweep.subtitle, .x = sweep.x, .y = sweep.y};
  const std::vector<double> places = places_of_line(sweep);
  for (const SweepCurve& curve : sweep.curves) {
    if (curve.predict) {
      PlotCurve line{.label = curve.label + ": formula", .mark = PlotMark::kLine};
      for (const double x : places) line.points.push_back({x, curve.predict(x)});
      plot.curves.push_back(std::move(line));
    }
    if (!curve.simulate) continue;
    PlotCurve points{.label = curve.label + ": simulated", .mark = PlotMark::kPoints};
    for (const double x : sweep.at) {
      try {
        points.points.push_back({x, curve.simulate(laboratory, x)});
      } catch (const StudySkipped&) {
        continue;
      }
    }
    plot.curves.push_back(std::move(points));
  }
  return plot;
}

}  // namespace stepsim
