// stepsim import primus: an experiment of Primus (examples/*/configs of AMD-AGI/Primus), YAML that
// wraps Megatron-LM, torchtitan or MaxText, becomes an experiment here. Of its module the
// overrides are read; its model is one of the catalog by its name, or the YAML files of
// primus/configs/models that are given behind it: those that "extends" names among them, too.
//
//   modules:
//     pre_trainer: { framework: megatron, config: pre_trainer.yaml, model: llama3.1_8B.yaml,
//                    overrides: { tensor_model_parallel_size: 1, .. } }

#pragma once

#include "import/importer.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_primus(const ImportRequest& request);

}  // namespace stepsim
