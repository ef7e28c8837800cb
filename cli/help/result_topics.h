// `stepsim help results [SUBCOMMAND]`: the members of the JSON that a subcommand writes, from the
// tables that write it (traces/results/result_table.h).

#pragma once

#include <span>
#include <string>

namespace stepsim {

// `words`: nothing for the list of subcommands with --json, or one of them; --markdown for all of
// them as a page. Throws ConfigError for other words.
std::string results_help(std::span<const std::string> words);

}  // namespace stepsim
