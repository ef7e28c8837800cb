// The text's model in a config.json: the whole file, or an object inside a model of several parts.

#pragma once

#include <optional>
#include <string>

#include "proto/messages/json_value.h"

namespace stepsim {

struct TextPart {
  Json object;
  std::string inside{};          // ": text_config"; "" for a file of a text model alone
  std::string note{};            // what is left out, and what was assumed
  std::optional<Json> vision{};  // its vision part, if models can express it
};

// Returns the innermost such object. Keys that may stand outside it (model_type, the tables' tie,
// weights' types) are copied in; sizes that it leaves to its class are filled in
// (class_defaults.h).
TextPart text_part(Json object);

// Returns whether a file has such an object, or is of a model by itself.
bool has_text_part(const Json& object);

}  // namespace stepsim
