// Writes an experiment as the settings of a trainer: `run --export megatron PATH`. One row of a
// table an exporter (trainer_export.cc), one file that knows the software's keys.
//
//   const TrainerExporter* const exporter = find_trainer_exporter("torchtitan");
//   const TrainerExport made = export_settings(*exporter, loaded);
//
// The text is read again by the importer of the same kind, with the cluster of the experiment, and
// what that finds is compared field by field (same_plan.h). So nothing is written that reads as
// another plan without a word: a difference in a field that says what is trained or how the work
// is divided (the model, the axes, the batch, the schedule, types, recompute, what is on the host)
// refuses the export; any other is a note, in `notes` and as a comment in the file.
//
// Not written: failures, variation and the cluster, which no trainer's settings have. Data,
// tokenizers and checkpoints are stand-ins where the software must have some.
//
// Cost: of one import.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/exports/exported_settings.h"
#include "proto/load_experiment.h"

namespace stepsim {

struct TrainerExporter {
  std::string_view kind;      // "megatron", also that of the importer
  std::string_view software;  // "Megatron-LM"
  void (*set)(const Experiment& experiment, ExportedSettings& made);
  std::string (*text)(const ExportedSettings& made);
};

std::span<const TrainerExporter> trainer_exporters();
const TrainerExporter* find_trainer_exporter(std::string_view kind);  // nullptr: there is none

struct TrainerExport {
  std::string text;
  std::vector<std::string> notes;
};

// `record` is that of the experiment. Throws ConfigError with everything that the software can't
// do or its file can't say.
TrainerExport export_settings(const TrainerExporter& exporter, const Experiment& experiment,
                              const ExperimentRecord& record);

// Each sets what its software has keys for, and refuses what it can't do.
void set_core_settings(const Experiment& experiment, ExportedSettings& made);  // Megatron Core
void set_torchtitan_settings(const Experiment& experiment, ExportedSettings& made);
void set_maxtext_settings(const Experiment& experiment, ExportedSettings& made);
// Megatron Core's under the names of Megatron Bridge.
void set_nemo_settings(const Experiment& experiment, ExportedSettings& made);

}  // namespace stepsim
