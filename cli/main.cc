// stepsim, the command line: finds the subcommand and runs it. This is the only place that prints
// errors and exits.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/help.h"
#include "cli/progress.h"
#include "cli/standard_output.h"
#include "cli/subcommands.h"
#include "cli/version.h"
#include "sim/base/error.h"
#include "sim/run/simulate.h"
#include "traces/output_file.h"

namespace stepsim {
namespace {

bool asks_for_help(const std::string& argument) {
  return argument == "--help" || argument == "-h";
}

ExitStatus print_and_end(const std::string& text) {
  print(text);
  return ExitStatus::kDone;
}

ExitStatus dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return print_and_end(overview());
  if (arguments[0] == "--version") return print_and_end(fmt::format("stepsim {}\n", version()));
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (asks_for_help(arguments[0])) return kHelpSubcommand.run(rest);
  const Subcommand& subcommand = find_subcommand(arguments[0]);
  if (std::ranges::any_of(rest, asks_for_help)) return print_and_end(help_text(subcommand));
  return subcommand.run(rest);
}

ExitStatus report_problems(const ConfigError& error) {
  const std::size_t count = error.problems().size();
  fmt::print(stderr, "stepsim: {} in the input\n",
             count == 1 ? "a problem" : fmt::format("{} problems", count));
  for (const Problem& problem : error.problems()) {
    fmt::print(stderr, "  {}: {}\n", problem.field, problem.message);
  }
  return ExitStatus::kWrongInput;
}

int run_program(const std::vector<std::string>& arguments) {
  try {
    return static_cast<int>(dispatch(arguments));
  } catch (const ConfigError& error) {
    return static_cast<int>(report_problems(error));
  } catch (const OutputError& error) {
    fmt::print(stderr, "stepsim: {}\n", error.what());
    return static_cast<int>(ExitStatus::kNoOutput);
  } catch (const SimulationInterrupted&) {
    fmt::print(stderr, "stepsim: interrupted, nothing was written\n");
    return 128 + interrupt_signal();
  } catch (const DeadlockError& error) {
    fmt::print(stderr, "stepsim: the step never ends\n{}", error.what());
    return static_cast<int>(ExitStatus::kNo);
  } catch (const std::range_error& error) {
    fmt::print(stderr, "stepsim: the step takes longer than simulated time can be (106 days): {}\n",
               error.what());
    return static_cast<int>(ExitStatus::kWrongInput);
  } catch (const std::exception& error) {
    fmt::print(stderr, "stepsim: this is a mistake of the program, please report it\n  {}\n",
               error.what());
    return static_cast<int>(ExitStatus::kWrongProgram);
  }
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  return stepsim::run_program({argv + 1, argv + argc});
}
