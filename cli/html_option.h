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

// Returns what was asked for, as a JSON object: the words and the options as they were given,
// without those that say only where outputs go and how fast they come. It is the member `asked` of
// results.
std::string asked_json(const CommandLine& line);

// Returns the page of a result of any command but run (pages/result_page.h). REQUIRES: `json` is
// one.
std::string html_of_result(const std::string& json);

}  // namespace stepsim
