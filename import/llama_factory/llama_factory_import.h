// stepsim import llama-factory: YAML of LLaMA-Factory (src/llamafactory/hparams of
// hiyouga/LLaMA-Factory) becomes an experiment. Stages pt and sft are read, with full weights or
// LoRA. A file of DeepSpeed that it names, or one of Accelerate, may be given behind it; those of
// its own folder examples/deepspeed are known. Files with keys of Megatron Core are read as such.

#pragma once

#include "import/importer.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_llama_factory(const ImportRequest& request);

}  // namespace stepsim
