// Subcommand is one task of stepsim: `stepsim NAME ...`. The file of a subcommand defines its row,
// and cli/subcommands.cc lists the rows. Dispatch, the overview of `stepsim help`, `stepsim help
// NAME`, `stepsim NAME --help` and suggestions for misspelt names all come from the rows.
// docs/adding-a-subcommand.md says how to add one.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace boost::program_options {
class options_description;
}

namespace stepsim {

// The exit status of the process; of several that apply, the largest. An interrupted process ends
// with 128 plus the signal (cli/session/interrupts.h). docs/reliability.md has the list for users.
enum class ExitStatus : int {
  kDone = 0,
  kNo = 1,            // the answer is no: a check failed, or a plan does not fit in memory
  kWrongInput = 2,    // every problem of the input is listed on standard error
  kWrongProgram = 3,  // a mistake of stepsim itself, or not enough memory
  kNoOutput = 4,      // an output could not be written, such as on a full disk; all others were
  kNoReader = 141,    // nobody reads standard output any more; as if SIGPIPE had ended the process
};

// Of work that has written what was done when the signal came.
constexpr ExitStatus interrupted_by(int signal) {
  return static_cast<ExitStatus>(128 + signal);
}

class AnyResultTable;

// What a subcommand writes as JSON.
struct CommandResult {
  std::string_view of;  // when it is this one, where there are several: "--fidelity all"
  const AnyResultTable* table;
};

using OptionList = boost::program_options::options_description;

struct Subcommand {
  std::string_view name;
  std::string_view arguments;    // as in the overview: "CASE [options]"
  std::string_view summary;      // a few words, for the overview
  std::string_view description;  // the help text above the options; ends in a newline
  // The allowed values of the first argument, if a table has them. nullptr: the description
  // explains that argument.
  std::vector<std::string> (*names)() = nullptr;
  OptionList (*options)();  // nullptr: it has no options. --help is added to each list.
  // Gets the arguments after the name, none of which is --help or -h. Throws ConfigError with every
  // problem of the input at once.
  ExitStatus (*run)(const std::vector<std::string>& arguments);
  // What --json writes (traces/results/result_table.h); nullptr: it has no --json.
  std::vector<CommandResult> (*results)() = nullptr;
};

}  // namespace stepsim
