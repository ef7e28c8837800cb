// A request file is a CSV with a request a row:
//
//   arrival_s or arrival_us   since the start, or since any moment; not before the row above
//   input_tokens, output_tokens
//   prefix, prefix_tokens     optional: requests of one prefix begin with the same tokens
//   priority                  optional: a whole number
//
// Other columns are for people, and for `where`.

#pragma once

#include <string>
#include <vector>

#include "serving/requests/request_source.h"

namespace stepsim {

// The rows of a file that a source asks for. PrefixIds are numbered from 0 in order of appearance.
struct RequestRows {
  std::vector<Request> requests;
  std::uint32_t prefixes = 0;
};

// Throws ConfigError with the problems of the file, at most a hundred. Without `with_arrivals` only
// lengths are read.
RequestRows read_request_file(const std::string& path, const std::string& where,
                              bool with_arrivals);

}  // namespace stepsim
