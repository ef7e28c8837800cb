// The option --headroom of subcommands that say whether a plan fits.

#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <vector>

#include "cli/command_line.h"
#include "experiment/uncertainty.h"
#include "sim/base/error.h"

namespace stepsim {

void add_headroom_option(boost::program_options::options_description& options);

// Returns nullopt if the option is not given. Adds a problem if it is neither a share of the memory
// nor "interval".
std::optional<Headroom> read_headroom(const CommandLine& line, std::vector<Problem>& problems);

// "10 % of the memory", "the upper end of the interval"
std::string text_of(const Headroom& headroom);

}  // namespace stepsim
