// stepsim, the command line: finds the subcommand and runs it. This is the only place that prints
// errors and exits.

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/help/help.h"
#include "cli/out_of_memory.h"
#include "cli/session/interrupts.h"
#include "cli/session/progress_line.h"
#include "cli/session/standard_output.h"
#include "cli/subcommands.h"
#include "cli/version.h"
#include "sim/base/error.h"
#include "sim/run/simulate.h"
#include "traces/files/output_file.h"

namespace stepsim {
namespace {

bool asks_for_quiet(const std::string& argument) {
  return argument == "--quiet";
}

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
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (std::erase_if(rest, asks_for_quiet) > 0) hide_progress();
  if (asks_for_help(arguments[0])) return kHelpSubcommand.run(rest);
  const Subcommand& subcommand = find_subcommand(arguments[0]);
  if (std::ranges::any_of(rest, asks_for_help)) return print_and_end(help_text(subcommand));
  return subcommand.run(rest);
}

ExitStatus report_problems(const ConfigError& error) {
  const std::size_t count = error.problems().size();
  std::string text = fmt::format("stepsim: {} in the input\n",
                                 count == 1 ? "a problem" : fmt::format("{} problems", count));
  for (const Problem& problem : error.problems()) {
    text += fmt::format("  {}: {}\n", problem.field, problem.message);
  }
  print_error(text);
  return ExitStatus::kWrongInput;
}

ExitStatus run_subcommand(const std::vector<std::string>& arguments) {
  try {
    return dispatch(arguments);
  } catch (const ConfigError& error) {
    return report_problems(error);
  } catch (const NoReader&) {
    return ExitStatus::kNoReader;
  } catch (const OutputError& error) {
    print_error(fmt::format("stepsim: {}\n", error.what()));
    return ExitStatus::kNoOutput;
  } catch (const DeadlockError& error) {
    print_error(fmt::format("stepsim: the step never ends\n{}", error.what()));
    return ExitStatus::kNo;
  } catch (const std::range_error& error) {
    print_error(fmt::format("stepsim: {}\n", error.what()));
    return ExitStatus::kWrongInput;
  } catch (const std::filesystem::filesystem_error& error) {  // of a name that people gave
    print_error(fmt::format("stepsim: a problem in the input\n  {}: {}\n", error.path1().string(),
                            error.code().message()));
    return ExitStatus::kWrongInput;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    print_error(fmt::format("stepsim: this is a mistake of the program, please report it\n  {}\n",
                            error.what()));
    return ExitStatus::kWrongProgram;
  }
}

// Simulations need much the same memory again and again, and large graphs grow. Giving memory back
// to the system in between costs a tenth of a search's time, and a quarter of a large job's.
void keep_freed_memory() {
  constexpr int kMost = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kMost);
  mallopt(M_TRIM_THRESHOLD, kMost);
}

ExitStatus run_program(std::span<char*> arguments) {
  try {
    return run_subcommand({arguments.begin() + 1, arguments.end()});
  } catch (const std::bad_alloc&) {
    print_out_of_memory();
    return ExitStatus::kWrongProgram;
  }
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  stepsim::keep_freed_memory();
  stepsim::fill_closed_streams();
  stepsim::prepare_for_exceptions();
  stepsim::catch_interrupts();
  return static_cast<int>(stepsim::run_program({argv, static_cast<std::size_t>(argc)}));
}
