#include "import/llama_factory/llama_factory_import.h"

#include <algorithm>

#include "import/megatron/core_experiment.h"
#include "import/settings/settings_files.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_keys.h"
#include "import/transformers/trainer_arguments.h"

namespace stepsim {

Imported import_llama_factory(const ImportRequest& request) {
  std::vector<Problem> problems;
  Settings settings(problems);
  ImportRequest of_yaml = request;
  std::erase_if(of_yaml.files, [](const std::string& path) { return path.ends_with(".json"); });
  const TrainerFiles files =
      read_trainer_files(of_yaml, "LLaMA-Factory takes YAML", problems,
                         [&](const std::string& text, const std::string& name) {
                           read_yaml_settings(text, name, settings, problems);
                         });
  for (const std::string& word : files.overrides) apply_override(word, settings);
  if (!settings.has("model_name_or_path") && !settings.has("model")) {
    problems.push_back({files.paths[0], "has no settings of LLaMA-Factory, as model_name_or_path"});
    throw_if_any(problems);
  }
  if (!settings.has("tensor_model_parallel_size")) {
    return import_trainer_arguments(
        {.kind = "llama-factory", .deepspeed_software = "transformers-deepspeed"}, request.files,
        settings, request, problems);
  }
  const TrainerKeys& keys = keys_of_trainer("llama-factory megatron");
  check_choices("deepspeed", settings);  // the stage
  rename_keys(keys, settings, problems);
  return import_core_of_hub("llama-factory", keys, settings, request, problems);
}

}  // namespace stepsim
