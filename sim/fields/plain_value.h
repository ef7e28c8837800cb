// plain_value_of() reads a value of a file as a number, whatever quantity it is: for axes of
// pictures.

#pragma once

#include <optional>
#include <string>

namespace stepsim {

struct PlainValue {
  double number = 0;
  std::string unit{};  // "B/s", "s", "FLOP/s", "B"; empty: a plain number
};

// Returns nullopt if the text is neither a number nor a quantity.
std::optional<PlainValue> plain_value_of(const std::string& text);

}  // namespace stepsim
