// Loads mixes of requests of the catalog (proto/request_mix.proto).

#pragma once

#include <string>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

// Lengths of prompts and answers, as --requests has them.
struct RequestMix {
  std::string input;
  std::string output;
};

// Adds a problem of the field if the catalog has no such mix, or its file is wrong.
RequestMix load_mix(const std::string& name, const std::string& field,
                    std::vector<Problem>& problems);

// Returns the text with "mix=NAME" replaced by the two lengths: "poisson:rate=4,mix=1k1k". Adds all
// problems.
std::string with_mix(const std::string& requests, std::vector<Problem>& problems);

}  // namespace stepsim
