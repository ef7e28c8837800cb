// stepsim import deepspeed: the JSON that DeepSpeed takes becomes an experiment, together with the
// model that is trained (a folder or config.json of Hugging Face, or --model). What wraps
// DeepSpeed hands its own settings to the same reader (import/transformers): those of the model, of
// sequences and of adapters, which DeepSpeed's file lacks, are
//
//   model, sequence_length, gradient_checkpointing, tuner (full, lora), lora_rank, torch_type,
//   trainer_optimizer, num_processes or nproc_per_node and nnodes

#pragma once

#include <string>

#include "import/importer.h"
#include "import/trainer/trainer_experiment.h"

namespace stepsim {

// Throws ConfigError with every problem.
Imported import_deepspeed(const ImportRequest& request);

struct DeepspeedOptions {
  std::string software{};    // of the catalog
  std::string model_path{};  // a config.json or its folder; empty: the settings name the model
};
// Sets model, plan and cluster.
void read_deepspeed_experiment(const DeepspeedOptions& options, TrainerExperiment& made);

// Empties keys whose value is "auto", types apart: somebody else decides on them.
void drop_automatic(Settings& settings);

// Returns whether a setting changes no step's time.
bool deepspeed_changes_no_time(const Setting& setting);

}  // namespace stepsim
