// stepsim import deepspeed: the JSON of DeepSpeed, and the model that it trains (a config.json of
// Hugging Face or its folder, or --model), becomes an experiment. "auto", which Hugging Face's
// integration fills in, counts as not given.

#pragma once

#include "import/importer.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_deepspeed(const ImportRequest& request);

}  // namespace stepsim
