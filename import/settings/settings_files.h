// Reads files of settings: YAML, TOML and JSON, each as its own standard parser has it.
//
// Aliases of YAML are copied, and merged by "<<"; a text whose aliases multiply beyond the limits
// of settings.h is refused. YAML's plain scalars stay texts ("1e-5", "yes"): who asks for a number
// or a truth value decides. ${...} is resolved by resolve_references(). Lists of groups have their
// index as a name: "layers.0.attention".

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/settings/settings.h"

namespace stepsim {

// Each adds the settings of the text. `file` is the name for places. A text that can't be read is a
// problem with its line; then nothing is promised about the settings.
void read_yaml_settings(std::string_view text, const std::string& file, Settings& settings,
                        std::vector<Problem>& problems);
void read_toml_settings(std::string_view text, const std::string& file, Settings& settings,
                        std::vector<Problem>& problems);
void read_json_settings(std::string_view text, const std::string& file, Settings& settings,
                        std::vector<Problem>& problems);

// Resolves ${group.key}, ${.sibling} and the sums and products of NeMo and OmegaConf
// (${multiply:a,b}, ${sum:a,b}, ${divide:a,b}). What can't be resolved stays as it is.
void resolve_references(Settings& settings);

// Reads a settings file, 16 MiB at most unless --max-input says otherwise, also compressed with
// gzip. Returns nullopt, and adds a problem, if it can't be read or is empty.
std::optional<std::string> read_settings_text(const std::string& path,
                                              std::vector<Problem>& problems);

// Returns whether `word` is KEY=VALUE rather than a file.
bool is_override(std::string_view word);
// Sets KEY=VALUE over what the files say. Lists are [a,b].
void apply_override(std::string_view word, Settings& settings);

}  // namespace stepsim
