// stepsim import nanotron: YAML of Nanotron (src/nanotron/config of huggingface/nanotron) becomes
// an experiment. Its keys get Megatron Core's names (catalog/trainers/keys.textproto). Llama,
// Qwen 2 and their experts are read; models of Mamba and StarCoder 2 are refused.

#pragma once

#include "import/importer.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_nanotron(const ImportRequest& request);

}  // namespace stepsim
