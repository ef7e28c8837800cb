#include "topology/kinds/spec_checks.h"

#include <algorithm>
#include <utility>

namespace stepsim {

void SpecChecks::add(std::string field, std::string message) {
  problems_.push_back({std::move(field), std::move(message)});
}

void SpecChecks::add(std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    if (std::ranges::find(problems_, problem) == problems_.end()) {
      problems_.push_back(std::move(problem));
    }
  }
}

}  // namespace stepsim
