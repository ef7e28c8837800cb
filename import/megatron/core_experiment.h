// Turns settings of Megatron Core into an experiment: those of Megatron-LM's arguments, and those
// of NeMo and Megatron Bridge once their keys have the same names (import/nemo).
//
// Defaults are those of Megatron-LM (megatron/training/arguments.py, transformer_config.py) where
// the settings do not say otherwise: no sequence parallelism, dropout of 0.1, an expert tensor size
// equal to the tensor size, clipping at 1.0, bf16 gradients accumulated in fp32.

#pragma once

#include <string>

#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_keys.h"

namespace stepsim {

struct CoreOptions {
  std::string software = "megatron-core";
  // A model of the catalog that the settings name; they change it. Empty: the settings have it all.
  std::string model{};
  std::string model_from{};  // the key that names it
  // Multi-token prediction is trained only if mtp_num_layers says so, whatever the model has.
  bool prediction_by_flag = false;
};

// Sets model, plan and cluster.
void read_core_experiment(const CoreOptions& options, TrainerExperiment& made);

// The model alone: REQUIRES nothing; what is missing is a problem. `padding`: ranks over which the
// vocabulary is padded.
void read_core_model(const CoreOptions& options, std::int64_t padding, TrainerExperiment& made);

// For what wraps Megatron Core and takes models by their names on a hub ("model"): `keys` have its
// defaults, and its own keys that change no step's time. Throws ConfigError with every problem.
Imported import_core_of_hub(const std::string& kind, const TrainerKeys& keys, Settings& settings,
                            const ImportRequest& request, std::vector<Problem>& problems);

// Returns whether a setting changes no step's time: learning rates, paths, checkpoints, logs, how
// values are initialised, switches that are off.
bool core_changes_no_time(const Setting& setting);

}  // namespace stepsim
