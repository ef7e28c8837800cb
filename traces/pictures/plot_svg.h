// plot_svg() writes a Plot (books/laboratory/plot.h) as a self-contained picture: SVG 1.1 without
// scripts, with the reader's sans-serif font, and the same bytes for the same plot.
//
//     title
//     y label  |      o   o            axes are linear or logarithmic, ticks are round numbers with
//              |   o /                 their units; curves of kLine are lines, kPoints markers;
//              | o--/                  bars stand side by side at each x
//              +--------- x label      the legend is below the axes, in two columns if it fits
//
// A bar of less than a letter's height has its value above it. Notes are dashed lines at their x.
//
// Curves use the eight colours of sim/base/palette.h in turn. A line and a marker have the same
// colour if their labels are equal up to the colon, as in "n = 16: formula" and "n = 16:
// simulated". Joined points that have a colour again have dashes and another shape. It throws
// nothing. A plot without any point that can be drawn has axes from 0 to 1.

#pragma once

#include <string>
#include <vector>

#include "books/laboratory/plot.h"

namespace stepsim {

std::string plot_svg(const Plot& plot);

// A tornado: a row of two horizontal bars from 0 for each thing that can change, the first on top.
struct TornadoRow {
  std::string name;
  double less = 0;  // what less of it changes
  double more = 0;
};
struct Tornado {
  std::string title{};
  std::string subtitle{};
  PlotAxis x{};
  std::string less{};  // labels of the bars: "10 % less"
  std::string more{};
  std::vector<TornadoRow> rows{};
};
std::string tornado_svg(const Tornado& tornado);

}  // namespace stepsim
