// stepsim import nemo: YAML of NeMo and of Megatron Bridge becomes an experiment:
//
//   NeMo 1           trainer, model, exp_manager (megatron_gpt_config.yaml, the launcher's
//   175b.yaml) NeMo 2           what `nemo llm pretrain --to-yaml` writes: _target_,
//   trainer.strategy, model.config Megatron Bridge  its ConfigContainer: model, train, ddp,
//   mixed_precision, comm_overlap
//
// All three configure Megatron Core: their keys get its names, and import/megatron makes the
// experiment. ${...} is resolved where it names keys of the file.

#pragma once

#include <string>
#include <string_view>

#include "import/importer.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_nemo(const ImportRequest& request);

// Returns the catalog's name of the model that a class configures
// ("nemo.collections.llm.gpt.model.llama.Llama31Config70B" is llama3.1-70b); "" if there is none.
std::string nemo_model(std::string_view class_name);

}  // namespace stepsim
