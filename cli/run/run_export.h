// `stepsim run .. --export KIND PATH`: writes the op graph of the step for other simulators, or the
// experiment as the settings of a trainer.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/export_option.h"
#include "cli/subcommand.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct RunExport {
  std::optional<AskedExport> asked{};
  std::optional<TrainerExport> settings{};  // of a trainer, from prepare_export() on
};

// Takes --export and its two words out of the arguments. Throws ConfigError if they are no export.
// `kineto FOLDER` becomes the options of a trace in that format, which are the same files; then
// nothing is asked.
RunExport take_run_export(std::vector<std::string>& arguments);

// Makes the folder, tries whether it, or the file, can be written, and makes the settings of a
// trainer. Throws ConfigError if a part fails, and for more ranks than files are written of.
// REQUIRES: something is asked, as for the next one.
void prepare_export(const Experiment& experiment, const ExperimentRecord& record,
                    RunExport& result);

// Writes the files. REQUIRES: prepare_export() was called.
ExitStatus write_export(const RunExport& result, const OpGraph& graph, const Cluster& cluster);

}  // namespace stepsim
