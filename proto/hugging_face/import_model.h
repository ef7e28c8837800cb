// A model of elsewhere as a model file of ours.

#pragma once

#include <string>

namespace stepsim {

// The protobuf text of the model that the config.json at `path` describes, with a line above it
// that says where it comes from and how large it is. Throws ConfigError with every problem.
std::string import_hugging_face(const std::string& path);

}  // namespace stepsim
