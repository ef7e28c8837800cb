// The figure of measured training runs: what was predicted against what was measured.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "books/laboratory/figures.h"
#include "proto/catalog/measured_tables.h"

namespace stepsim {
namespace {

double median_error(const std::vector<PlotPoint>& points) {
  std::vector<double> errors;
  for (const PlotPoint& point : points) errors.push_back(std::abs(point.y / point.x - 1));
  std::ranges::sort(errors);
  const std::size_t middle = errors.size() / 2;
  return errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
}

// A curve for each group, whose label ends with the number of its runs and their median error.
std::vector<PlotCurve> runs_by_group(const std::vector<PredictedRun>& runs) {
  std::vector<PlotCurve> curves;
  for (const PredictedRun& run : runs) {
    if (curves.empty() || curves.back().label != run.group) {
      curves.push_back({.label = run.group, .mark = PlotMark::kPoints, .points = {}});
    }
    curves.back().points.push_back({run.measured_s, run.predicted_s});
  }
  for (PlotCurve& curve : curves) {
    const auto tenths = static_cast<int>(std::lround(1000 * median_error(curve.points)));
    curve.label += ": " + std::to_string(curve.points.size()) + " runs, median error " +
                   std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
  }
  return curves;
}

PlotCurve ratio_line(std::string label, double ratio, double least, double most) {
  return {.label = std::move(label), .points = {{least, ratio * least}, {most, ratio * most}}};
}

Plot predicted_against_measured(const Laboratory&) {
  const std::vector<PredictedRun> runs = load_predicted_runs();
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const PredictedRun& run : runs) {
    least = std::min(least, run.measured_s);
    most = std::max(most, run.measured_s);
  }
  Plot plot{.title = "Step times of published training runs, predicted against measured",
            .subtitle = "the runs of docs/accuracy.md; on the middle line both are equal",
            .x = {.label = "measured", .unit = "s", .log = true, .ticks = {}},
            .y = {.label = "predicted", .unit = "s", .log = true, .ticks = {}},
            .curves = runs_by_group(runs)};
  plot.curves.push_back(ratio_line("predicted: as measured", 1, least, most));
  plot.curves.push_back(ratio_line("predicted: 20 % more", 1.2, least, most));
  plot.curves.push_back(ratio_line("predicted: 20 % less", 0.8, least, most));
  return plot;
}

}  // namespace

std::vector<Figure> accuracy_figures() {
  return {{"predicted-against-measured",
           "Step times of published training runs, predicted against measured, by source",
           predicted_against_measured}};
}

}  // namespace stepsim
