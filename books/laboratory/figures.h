// The sources' figures, drawn from simulation: formulas as lines, simulated steps and collectives
// as points. `stepsim figures` writes them all; docs/figures.md shows them.
//
//   for (const Figure& figure : figures()) plot_svg(figure.draw(Laboratory{}));

#pragma once

#include <string_view>
#include <vector>

#include "books/laboratory/laboratory.h"
#include "books/laboratory/plot.h"

namespace stepsim {

struct Figure {
  std::string_view name;  // name of the file: "flops-to-comms"
  std::string_view what;  // what the figure shows, in one sentence
  Plot (*draw)(const Laboratory& laboratory);
};

std::vector<Figure> figures();

// Each file has one function:
std::vector<Figure> training_figures();    // training_figures.cc
std::vector<Figure> collective_figures();  // collective_figures.cc
std::vector<Figure> accuracy_figures();    // accuracy_figure.cc: data of the catalog

}  // namespace stepsim
