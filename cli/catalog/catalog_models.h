// The models of the catalog as a table: parameters, those that a token uses, layers, and what the
// layers are.

#pragma once

#include <string>

namespace stepsim {

std::string catalog_models_text();

}  // namespace stepsim
