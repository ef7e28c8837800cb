// Plot is a picture with two axes, as data. analysis/ builds it and traces/pictures/plot_svg.h
// writes it.
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

// Axes with units "B", "s", "B/s", "FLOP", "FLOP/s" have prefixes at the ticks: "64 kB", "20 us".
// Other units follow the label.
struct PlotAxis {
  std::string label{};
  std::string unit{};
  bool log = false;             // logarithmic: only positive values are drawn
  std::vector<double> ticks{};  // positions of labels; empty: round values
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

// From this x on something else holds, which the label names: a dashed line with the label at its
// top. A label at the left edge has no line.
struct PlotNote {
  double x = 0;
  std::string label{};
};

struct Plot {
  std::string title{};
  std::string subtitle{};  // one line that says what was run
  PlotAxis x{};
  PlotAxis y{};
  std::vector<PlotCurve> curves{};
  std::vector<PlotNote> notes{};
};

}  // namespace stepsim
