// Reads the files of other software whole, within the limits of sim/base/input_file.h; those that
// are compressed with gzip are decompressed.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/input_file.h"

namespace stepsim {

// Returns nullopt, and adds a problem under the path, if the file can't be read, or has or
// decompresses to more bytes than its kind may have.
std::optional<std::string> read_bytes(const std::string& path, std::vector<Problem>& problems,
                                      InputKind kind = InputKind::kCase);

// Returns the files themselves, and of each folder its files that end in `suffix`, by name; ranks
// in the order of their numbers ("x.2.et" before "x.10.et").
std::vector<std::string> files_of(const std::vector<std::string>& paths, std::string_view suffix,
                                  std::vector<Problem>& problems);

// Returns the last number of a file name before `suffix`: 12 for "run/trace.12.et".
std::optional<std::uint32_t> rank_in_name(const std::string& path);

// Returns a short name for messages: what stands behind the last slash.
std::string short_name(const std::string& path);

}  // namespace stepsim
