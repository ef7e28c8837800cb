// `stepsim run .. --export KIND PATH`: writes the op graph of the step for other simulators.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct RunExport {
  std::string kind;  // "chakra" or "goal"
  std::string path;  // a folder; goal: a file
};

// Takes --export and its two words out of the arguments. Throws ConfigError if they are no export.
// `kineto FOLDER` becomes the options of a trace in that format, which are the same files, and
// nullopt.
std::optional<RunExport> take_export(std::vector<std::string>& arguments);

// Makes the folder, and tries whether it, or the file, can be written. Throws ConfigError if not,
// and for more ranks than files are written of.
void prepare_export(const RunExport& asked, std::int64_t ranks);

// Writes the files. REQUIRES: prepare_export() was called.
ExitStatus write_export(const RunExport& asked, const OpGraph& graph, const Cluster& cluster);

}  // namespace stepsim
