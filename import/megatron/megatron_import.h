// stepsim import megatron: arguments of Megatron-LM become an experiment.

#pragma once

#include "import/importer.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_megatron(const ImportRequest& request);

}  // namespace stepsim
