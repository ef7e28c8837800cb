// read_case_elements() walks through a network case (network_case.h) without storing it. It passes
// on each element of the lists "links", "flows" and "expect", and each plain value beside them, and
// skips the rest.

#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

struct CaseVisitor {
  // Returns whether the elements of this list are wanted. Asked once, where the list begins.
  std::function<bool(const std::string& list)> wants;
  std::function<void(const std::string& list, std::size_t index, const nlohmann::json& element)>
      element;
  std::function<void(const std::string& key, const nlohmann::json& value)> value;
};

// Returns why the file could not be read to its end, or is not such an object; empty if there is no
// problem.
std::vector<Problem> read_case_elements(const std::string& path, const CaseVisitor& visitor);

}  // namespace stepsim
