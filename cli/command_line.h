// Reading the arguments of a subcommand: options, and words that stand by themselves.
//
//   po::options_description options = ...;   // --dot FILE, --json FILE
//   const CommandLine line = read_command_line(arguments, options, problems);
//   line.words                               // ["dgx-h100-512"]
//   line.value("json")                       // "" where the option was not given

#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

struct CommandLine {
  std::vector<std::string> words;
  boost::program_options::variables_map options;

  std::string value(const std::string& option) const;
};

// Adds what is wrong with the command line itself to `problems`, all at once where Boost goes on.
CommandLine read_command_line(const std::vector<std::string>& arguments,
                              const boost::program_options::options_description& options,
                              std::vector<Problem>& problems);

// The name of a file to be written: empty, "-" or one that can be written now; else a problem.
std::string read_output_path(const CommandLine& line, const std::string& option, bool may_be_stdout,
                             std::vector<Problem>& problems);

}  // namespace stepsim
