#include "books/laboratory/figures.h"

namespace stepsim {

std::vector<Figure> figures() {
  std::vector<Figure> all = training_figures();
  for (const Figure& figure : collective_figures()) all.push_back(figure);
  for (const Figure& figure : accuracy_figures()) all.push_back(figure);
  return all;
}

}  // namespace stepsim
