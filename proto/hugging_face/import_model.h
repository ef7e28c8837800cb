// Converts a Hugging Face model into a model file of stepsim.

#pragma once

#include <string>

namespace stepsim {

// Returns the protobuf text of the model that the config.json at `path` (or in that folder)
// describes, with a line above it that gives its source and size. `as`: the family as which it is
// read, "" for its own. Throws ConfigError with every problem.
std::string import_hugging_face(const std::string& path, const std::string& as);

// Returns the families that are read, one a line.
std::string families_text();

}  // namespace stepsim
