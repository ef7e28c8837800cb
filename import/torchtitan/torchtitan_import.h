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

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_torchtitan(const ImportRequest& request);

// Returns the layers of each stage: as many as possible alike, where embedding and head count as so
// many layers (torchtitan's generate_llm_fqn_per_model_part). nullopt if there are too few.
std::optional<std::vector<std::int64_t>> torchtitan_layout(std::int64_t layers, std::int64_t stages,
                                                           std::int64_t embedding_weight,
                                                           std::int64_t head_weight);

// A flavor of a model: a model of the catalog, or fields of one that the catalog does not have.
struct TorchtitanFlavor {
  std::string_view model;    // "llama3"
  std::string_view flavor;   // "8B"; "8B_flex" is the same
  std::string_view catalog;  // "" if it has `fields` only
  std::string_view fields;   // "layers=36,hidden=2560"
};
const TorchtitanFlavor* find_flavor(std::string_view model, std::string_view flavor);
// Names of all, for messages: "llama3 8B".
std::vector<std::string> torchtitan_flavors();

}  // namespace stepsim
