// --export KIND PATH, of commands that write their work for other software. It takes two words, so
// it is taken out of the arguments before they are read.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/outputs.h"
#include "import/exports/trainer_export.h"

namespace stepsim {

struct AskedExport {
  std::string kind;  // "goal"
  std::string path;  // a folder or a file
};

// Takes --export and its two words out of the arguments; nullopt: they have none. Throws
// ConfigError if it is no export of one of the kinds.
std::optional<AskedExport> take_export(std::vector<std::string>& arguments,
                                       const std::vector<std::string>& kinds);

std::vector<std::string> trainer_kinds();  // "megatron" and so on

// Throws ConfigError if the file can't be written.
void require_writable(const AskedExport& asked);

// Returns the settings of a trainer. Throws ConfigError, under "--export KIND", with everything
// that its software can't do. REQUIRES: asked.kind is one of trainer_kinds().
TrainerExport settings_for(const AskedExport& asked, const Experiment& experiment,
                           const ExperimentRecord& record);

// Says on standard error what an export can't say.
void say_notes(const std::vector<std::string>& notes);

// Writes the settings, and says on standard error what they can't say.
void write_settings(const AskedExport& asked, const TrainerExport& made, Outputs& outputs);

}  // namespace stepsim
