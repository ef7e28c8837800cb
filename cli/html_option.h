// The option --html of subcommands whose result has a page (pages/).

#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "sim/base/error.h"

namespace stepsim {

void add_html_option(boost::program_options::options_description& options);

// Returns the name of the file, "" if the option is not given. Adds a problem if it can't be
// written, if another option of `others` leads to the same file, or if this build has no charts.
std::string read_html_path(const CommandLine& line, const std::vector<std::string>& others,
                           std::vector<Problem>& problems);

}  // namespace stepsim
