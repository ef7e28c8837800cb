// Turns settings of Megatron Core into an experiment: those of Megatron-LM's arguments, and those
// of NeMo and Megatron Bridge once their keys have the same names (import/nemo).
//
// Defaults are those of Megatron-LM (megatron/training/arguments.py, transformer_config.py) where
// the settings do not say otherwise: no sequence parallelism, dropout of 0.1, an expert tensor size
// equal to the tensor size, clipping at 1.0, bf16 gradients accumulated in fp32.

#pragma once

#include <string>

#include "import/trainer/trainer_experiment.h"

namespace stepsim {

struct CoreOptions {
  std::string software = "megatron-core";
  // A model of the catalog that the settings name; they change it. Empty: the settings have it all.
  std::string model{};
  std::string model_from{};  // the key that names it
};

// Sets model, plan and cluster.
void read_core_experiment(const CoreOptions& options, TrainerExperiment& made);

// The model alone: REQUIRES nothing; what is missing is a problem. `padding`: ranks over which the
// vocabulary is padded.
void read_core_model(const CoreOptions& options, std::int64_t padding, TrainerExperiment& made);

// Returns whether a setting changes no step's time: learning rates, paths, checkpoints, logs, how
// values are initialised, switches that are off.
bool core_changes_no_time(const Setting& setting);

}  // namespace stepsim
