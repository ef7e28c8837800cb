// Reads the arguments of a subcommand: options, and words that are no options.
//
//   po::options_description options = ...;   // --dot FILE, --json FILE
//   const CommandLine line = read_command_line(arguments, options, problems);
//   line.words                               // ["dgx-h100-512"]
//   line.value("json")                       // "" where the option was not given

#pragma once

#include <boost/program_options.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

enum class OutputFormat {
  kJson,         // .json, or .json.gz for a compressed one
  kChromeTrace,  // the same names
  kTrace,        // the same, or .pftrace for Perfetto's own format
  kSvg,          // .svg
  kDot,          // .dot or .gv
  kHtml,         // .html or .htm
  kCsv,          // .csv, or .csv.gz
  kTextproto,    // .textproto
  kStore,        // .sqlite, .sqlite3 or .db
};

struct CommandLine {
  std::vector<std::string> words;
  boost::program_options::variables_map options;

  std::string value(const std::string& option) const;
};

// Throws std::bad_alloc if an option has no name: where memory runs out, the library of options
// takes that for the end of a name of more than 15 letters.
void require_names(const boost::program_options::options_description& options);

// Adds problems of the command line itself to `problems`; all of them if Boost can continue. From
// then on files are read within --max-input.
CommandLine read_command_line(const std::vector<std::string>& arguments,
                              const boost::program_options::options_description& options,
                              std::vector<Problem>& problems);

// Adds --quiet and --help, which every subcommand has, and --json, which those with a result have.
void add_common_options(boost::program_options::options_description& options);
void add_json_option(boost::program_options::options_description& options);

// Adds --software and --pass, whose keys stand beside those of a plan.
void add_group_options(boost::program_options::options_description& options);

// Adds --max-input, which every subcommand that reads files has.
void add_input_option(boost::program_options::options_description& options);

// Returns the whole number of an option that is given. One out of `low` to `high` is a problem.
std::optional<std::int64_t> read_whole_number(const CommandLine& line, const std::string& option,
                                              std::int64_t low, std::int64_t high,
                                              std::vector<Problem>& problems);

// Returns the number of an option that is given. One that is not above 0, at most `most`, is a
// problem.
std::optional<double> read_positive(const CommandLine& line, const std::string& option, double most,
                                    std::vector<Problem>& problems);

// Returns how many threads an option asks for, 1 to 1,024. If it is not given: those of
// the machine, or one in each process that mpirun started.
std::size_t read_threads(const CommandLine& line, const std::string& option,
                         std::vector<Problem>& problems);

// Returns the name of a file to be written: "" if the option is not given, "-" for standard output
// (JSON only), or a file that can be written now. Otherwise it adds a problem. It also adds one if
// the name ends like a file of another format, or is the file that standard output goes to, that a
// word of the line names as an input, or that another option names. A name
// without a suffix promises no format and is accepted. Throws OutputError if the disk is full.
std::string read_output_path(const CommandLine& line, const std::string& option,
                             OutputFormat format, std::vector<Problem>& problems);

// Adds a problem if both options are given and lead to one file, however it is spelt.
void refuse_same_output(const CommandLine& line, const std::string& option,
                        const std::string& other, std::vector<Problem>& problems);

// Returns the name of a folder that files can be written to; "" if the option is not given. The
// folder is created if it does not exist, but only while there are no problems, so read this option
// last.
std::string read_output_folder(const CommandLine& line, const std::string& option,
                               std::vector<Problem>& problems);

}  // namespace stepsim
