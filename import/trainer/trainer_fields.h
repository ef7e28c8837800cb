// Reads and writes the keys of trainers that say a field of an experiment by themselves, by the
// tables of catalog/trainers/fields.textproto. A row is a key, its field and how values are said:
//
//   field { key: "cp_comm_type" path: "plan.cp_mode" values: "p2p=zigzag_ring,a2a=ulysses" }
//
//   read_fields("megatron", "latent", made);              // what the settings have of these keys
//   write_fields("megatron", "latent", values, exported);  // what the experiment has of these
//   fields
//
// What a key says only together with others is code of that trainer's importer and exporter.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "experiment/experiment.h"
#include "import/exports/exported_settings.h"
#include "import/trainer/trainer_experiment.h"

namespace stepsim {

// Sets the field of each key that is there, and of others what the table says in their place.
void read_fields(std::string_view software, std::string_view group, TrainerExperiment& made);

// The fields of an experiment, as text, by their paths: "plan.tp", "model.latent.q_rank".
using ExperimentValues = std::map<std::string, std::string, std::less<>>;
ExperimentValues values_of(const Experiment& experiment);

// Sets the key of each field whose value the software has a word for. A row without a key is a
// reason: why the field may read back as another value.
void write_fields(std::string_view software, std::string_view group, const ExperimentValues& values,
                  ExportedSettings& made);

}  // namespace stepsim
