// plot_svg() writes a Plot (analysis/studies/plot.h) as a picture of its own: SVG 1.1, no scripts,
// no fonts but the reader's sans-serif, the same bytes for the same plot.
//
//     title
//     y label  |      o   o            axes are linear or logarithmic, ticks are round numbers with
//              |   o /                 their units; curves of kLine are lines, kPoints markers;
//              | o--/                  bars stand side by side at each x
//              +--------- x label      the legend is below the axes
//
// Curves take turns over eight colours that colour-blind readers can tell apart (Okabe, Ito 2008);
// a line and a marker of one colour belong together when the labels' first words are equal, as in
// "n = 16: formula" and "n = 16: simulated" (up to the colon). Throws nothing; a plot without any
// point that can be drawn has axes from 0 to 1.

#pragma once

#include <string>

#include "analysis/studies/plot.h"

namespace stepsim {

std::string plot_svg(const Plot& plot);

}  // namespace stepsim
