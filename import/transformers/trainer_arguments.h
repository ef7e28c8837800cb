// Reads arguments of Hugging Face's Trainer, which LLaMA-Factory and ms-swift hand on with their
// own beside them: the model's name, batches, types, adapters, and who divides the state: a file
// of DeepSpeed, FSDP by Accelerate's file, or nobody. The reader of DeepSpeed's files makes the
// experiment (import/deepspeed/deepspeed_import.h); catalog/trainers/keys.textproto has the names.

#pragma once

#include <string>
#include <vector>

#include "import/importer.h"
#include "import/settings/settings.h"

namespace stepsim {

struct TrainerArguments {
  std::string kind;                // of `stepsim import`, and of the presets of its folder
  std::string deepspeed_software;  // of the catalog, under DeepSpeed
};

// `paths`: files of the request, of which one may be the file of DeepSpeed that the settings name.
// Throws ConfigError with every problem.
Imported import_trainer_arguments(const TrainerArguments& arguments,
                                  const std::vector<std::string>& paths, Settings& settings,
                                  const ImportRequest& request, std::vector<Problem>& problems);

}  // namespace stepsim
