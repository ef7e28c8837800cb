// The families of models that are read from a config.json. Each is a function from the file's keys
// to the fields of a model. Keys and defaults are those of the family's configuration class in
// transformers. The sizes must be given, except where all models of the family have the same.

#pragma once

#include <span>
#include <string_view>

#include "proto/hugging_face/families/hugging_face_config.h"
#include "proto/model.pb.h"

namespace stepsim {

struct HuggingFaceFamily {
  std::string_view model_type;
  void (*read)(HuggingFaceConfig& config, file::Model& model);
};

// All families, in alphabetical order.
std::span<const HuggingFaceFamily> hugging_face_families();

// Returns the keys that some family asks for and that shape a model.
const HuggingFaceConfig::Keys& keys_of_families();

// Returns why a family isn't read, or "" if nobody has looked into it.
std::string_view reason_not_read(std::string_view model_type);

}  // namespace stepsim
