// What a text_config may leave out: transformers writes of a nested configuration only what differs
// from its class (LLaVA's text model is "a llama with 32064 words"). A file of a model by itself
// gives its sizes in full, so nothing is assumed there.

#pragma once

#include <string>

#include "proto/messages/json_value.h"

namespace stepsim {

// Adds to the nested configuration the sizes of its model_type's class that it lacks. A key that is
// null stays so. Returns the names of those that were added, with commas between them.
std::string add_class_defaults(Json& object);

}  // namespace stepsim
