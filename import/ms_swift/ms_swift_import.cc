#include "import/ms_swift/ms_swift_import.h"

#include <algorithm>

#include "import/input_bytes.h"
#include "import/megatron/core_experiment.h"
#include "import/megatron/megatron_flags.h"
#include "import/settings/settings_files.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_keys.h"
#include "import/transformers/trainer_arguments.h"

namespace stepsim {
namespace {

bool is_yaml(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

}  // namespace

Imported import_swift_settings(const std::string& kind, const std::vector<std::string>& paths,
                               Settings& settings, const ImportRequest& request,
                               std::vector<Problem>& problems) {
  check_choices("ms-swift", settings);
  const bool is_megatron =
      settings.text("swift_program").value_or("").starts_with("megatron") ||
      (!settings.has("swift_program") && settings.has("tensor_model_parallel_size"));
  if (!is_megatron) {
    return import_trainer_arguments(
        {.kind = "ms-swift", .deepspeed_software = "ms-swift-deepspeed"}, paths, settings, request,
        problems);
  }
  if (settings.has("nproc_per_node")) {
    settings.set_if_absent({.key = "nnodes", .name = "NNODES", .value = 1, .place = "default"});
  }
  const TrainerKeys& keys = keys_of_trainer("ms-swift");
  rename_keys(keys, settings, problems);
  return import_core_of_hub(kind, keys, settings, request, problems);
}

Imported import_ms_swift(const ImportRequest& request) {
  std::vector<Problem> problems;
  const TrainerFiles files = trainer_files(request, problems);
  throw_if_any(problems);
  Settings settings(problems);
  for (const std::string& path : files.paths) {
    if (path.ends_with(".json")) continue;  // of DeepSpeed
    const auto text = read_settings_text(path, problems);
    throw_if_any(problems);
    if (is_yaml(path)) {
      read_yaml_settings(*text, short_name(path), settings, problems);
      for (const std::string& word : files.overrides) apply_override(word, settings);
    } else {
      read_megatron_flags(*text, path, files.overrides, settings, problems);
    }
  }
  throw_if_any(problems);
  if (!settings.has("model") && !settings.has("micro_batch_size") &&
      !settings.has("per_device_train_batch_size") && !settings.has("mcore_model")) {
    problems.push_back(
        {files.paths[0], "has no command of ms-swift, as megatron sft --model M --max_length N"});
    throw_if_any(problems);
  }
  return import_swift_settings("ms-swift", files.paths, settings, request, problems);
}

}  // namespace stepsim
