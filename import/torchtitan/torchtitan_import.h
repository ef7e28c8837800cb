// stepsim import torchtitan: TOML of torchtitan up to 2025, or the JSON that it dumps
// (save_config_file), becomes an experiment. Later releases describe a run in Python, which is not
// read: their JSON is.
//
// Keys of older releases are read under their later names (training.batch_size,
// experimental.pipeline_parallel_degree, ...).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/importer.h"
#include "import/settings/settings.h"
#include "proto/catalog/trainer_names.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_torchtitan(const ImportRequest& request);

// The same of settings that something else has read, under the names of the last release. `keys`:
// what wraps torchtitan has other defaults.
Imported import_torchtitan_settings(std::string_view kind, const TrainerKeys& keys,
                                    const ImportRequest& request, Settings& settings,
                                    std::vector<Problem>& problems);

// Returns the layers of each stage: as many as possible alike, where embedding and head count as so
// many layers (torchtitan's generate_llm_fqn_per_model_part). nullopt if there are too few.
std::optional<std::vector<std::int64_t>> torchtitan_layout(std::int64_t layers, std::int64_t stages,
                                                           std::int64_t embedding_weight,
                                                           std::int64_t head_weight);

// Returns the model of that flavor ("llama3", "8B"; "8B_flex" is the same); nullptr: it is not
// known.
const TrainerModel* find_flavor(std::string_view model, std::string_view flavor);

}  // namespace stepsim
