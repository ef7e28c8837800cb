// read_case_elements() walks through a network case (network_case.h) without storing it. It passes
// on each element of the lists "links", "flows" and "expect", each plain value beside them, and the
// objects "transport" and "switches", and skips the rest.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "proto/messages/json_value.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"

namespace stepsim {

struct CaseVisitor {
  // Returns whether the elements of this list are wanted. Asked once, where the list begins.
  std::function<bool(const std::string& list)> wants;
  std::function<void(const std::string& list, std::size_t index, const Json& element)> element;
  std::function<void(const std::string& key, const Json& value)> value;
};

// Reads the file from its beginning; `path` is its name. Returns why it could not be read to its
// end, or is not such an object; empty if there is no problem.
std::vector<Problem> read_case_elements(InputFile& file, const std::string& path,
                                        const CaseVisitor& visitor);

}  // namespace stepsim
