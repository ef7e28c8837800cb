#include "topology/kinds/spec_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "sim/base/quantity_text.h"

namespace stepsim {

void SpecChecks::within(const char* field, int value, int least, int most) {
  if (value < least || value > most) {
    add(field, fmt::format("must be {} to {}, is {}", least, most, value));
  }
}

void SpecChecks::at_least(const char* field, int value, int least) {
  if (value < least) add(field, fmt::format("must be at least {}, is {}", least, value));
}

void SpecChecks::positive(const char* field, Bandwidth value) {
  if (!(value > Bandwidth(0) && std::isfinite(value.value()))) {
    add(field, "must be positive, is " + to_text(value));
  }
}

void SpecChecks::not_negative(const char* field, Duration value) {
  if (value < Duration(0)) add(field, "must not be negative, is " + to_text(value));
}

void SpecChecks::add(std::string field, std::string message) {
  problems_.push_back({std::move(field), std::move(message)});
}

void SpecChecks::add(std::vector<Problem> problems) {
  for (Problem& problem : problems) problems_.push_back(std::move(problem));
}

}  // namespace stepsim
