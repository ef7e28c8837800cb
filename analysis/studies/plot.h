// Plot is a picture with two axes, as data: what analysis/ draws and traces/plot_svg.h writes.
//
//   Plot plot{.title = "AllGather on a line of 4",
//             .x = {.label = "bytes", .unit = "B", .log = true},
//             .y = {.label = "time", .unit = "s", .log = true},
//             .curves = {{.label = "formula", .points = {{1e3, 3e-6}, {1e6, 2e-5}}}}};

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepsim {

// Units "B", "s", "B/s", "FLOP", "FLOP/s" get prefixes at the ticks: "64 kB", "20 us". Others are
// written behind the label.
struct PlotAxis {
  std::string label{};
  std::string unit{};
  bool log = false;             // then only positive values are drawn
  std::vector<double> ticks{};  // where it is labelled; empty: at round values
};

enum class PlotMark : std::uint8_t { kLine, kPoints, kLineAndPoints, kBars };

struct PlotPoint {
  double x = 0;
  double y = 0;
};

// Points that are not finite break a line and are not drawn.
struct PlotCurve {
  std::string label{};
  PlotMark mark = PlotMark::kLine;
  std::vector<PlotPoint> points{};
};

struct Plot {
  std::string title{};
  std::string subtitle{};  // one line: what was run
  PlotAxis x{};
  PlotAxis y{};
  std::vector<PlotCurve> curves{};
};

}  // namespace stepsim
