// `stepsim run .. --export KIND PATH`: writes the op graph of the step for other simulators.

#pragma once

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

// Writes the files. Throws ConfigError for more ranks than can be written and folders that can't.
ExitStatus write_export(const RunExport& asked, const OpGraph& graph, const Cluster& cluster);

}  // namespace stepsim
