// The vision part of a config.json: an object of its own beside the text's ("vision_config").

#pragma once

#include <string>

#include "proto/messages/json_value.h"
#include "proto/messages/problem_list.h"
#include "proto/model.pb.h"

namespace stepsim {

// Returns whether the object describes a vision part that models can express: those of Qwen3-VL and
// Qwen3.5, and MoonViT with its first projector.
bool is_read_vision(const Json& object);

// Reads it into model.vision(). REQUIRES: is_read_vision(object), and the text's hidden is read.
void read_vision(const std::string& name, const Json& object, file::Model& model,
                 ProblemList& problems);

}  // namespace stepsim
