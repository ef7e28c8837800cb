// Writes texts and numbers in JSON.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// Escapes a text so that it can stand between the quotes of a JSON string. Bytes that are no UTF-8
// become U+FFFD, and hidden characters \u202e (sim/base/shown_text.h).
std::string json_escaped(std::string_view text);

std::string json_quoted(std::string_view text);  // with quotes around it

// Returns values, which are JSON, as a list: in one line, or each in a line of its own with so many
// blanks before it and two less before the bracket. A list without values is "[]".
std::string json_list(std::span<const std::string> values);
std::string json_lines(std::span<const std::string> values, int blanks);

// The same for other lists, whose elements `json_of` writes.
template <class List, class JsonOf>
std::vector<std::string> json_values(const List& list, const JsonOf& json_of) {
  std::vector<std::string> values;
  for (const auto& element : list) values.push_back(std::invoke(json_of, element));
  return values;
}

// Returns the shortest decimal that reads back as the same double; "null" for infinities and NaN.
std::string json_number(double value);

}  // namespace stepsim
