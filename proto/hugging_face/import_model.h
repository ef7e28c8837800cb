// Converts a Hugging Face model into a model file of stepsim.

#pragma once

#include <string>

namespace stepsim {

// Returns the protobuf text of the model that the config.json at `path` describes, with a line
// above it that gives its source and size. Throws ConfigError with every problem.
std::string import_hugging_face(const std::string& path);

}  // namespace stepsim
