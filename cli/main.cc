// stepsim, the command line: which subcommand was asked for. This is the only place that prints
// errors and exits.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/accuracy_command.h"
#include "cli/catalog_command.h"
#include "cli/collective/collective_command.h"
#include "cli/figures_command.h"
#include "cli/formula/formula_command.h"
#include "cli/help.h"
#include "cli/import_command.h"
#include "cli/network_command.h"
#include "cli/progress.h"
#include "cli/run/run_command.h"
#include "cli/schedule/schedule_command.h"
#include "cli/standard_output.h"
#include "cli/topology_command.h"
#include "cli/validate/validate_command.h"
#include "cli/version.h"
#include "sim/base/error.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

enum ExitStatus : int { kDone = 0, kNo = 1, kWrongInput = 2, kWrongProgram = 3 };

// Subcommands that print their answer, or throw.
struct Subcommand {
  std::string_view name;
  void (*run)(const std::vector<std::string>& arguments);
};
constexpr Subcommand kSubcommands[] = {
    {"accuracy", run_accuracy_command},
    {"catalog", [](const auto& arguments) { print(catalog_text(arguments)); }},
    {"collective", run_collective_command},
    {"figures", run_figures_command},
    {"formula", run_formula_command},
    {"help", [](const auto& arguments) { print(help_text(arguments)); }},
    {"--help", [](const auto& arguments) { print(help_text(arguments)); }},
    {"import", [](const auto& arguments) { print(import_text(arguments)); }},
    {"network", run_network_command},
    {"schedule", run_schedule_command},
    {"topology", run_topology_command},
    {"--version", [](const auto&) { print(fmt::format("stepsim {}\n", version())); }},
};

int dispatch(const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "help" : arguments[0];
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1),
                                      arguments.end());
  if (command == "run") return run_run_command(rest) ? kDone : kNo;
  if (command == "validate") return run_validate_command(rest) ? kDone : kNo;
  const auto found = std::ranges::find(kSubcommands, command, &Subcommand::name);
  if (found == std::end(kSubcommands)) {
    refuse_subcommand(command);
  } else if (!rest.empty() && rest[0] == "--help") {
    print(help_text({command}));
  } else {
    found->run(rest);
  }
  return kDone;
}

int report_problems(const ConfigError& error) {
  const std::size_t count = error.problems().size();
  fmt::print(stderr, "stepsim: {} in the input\n",
             count == 1 ? "a problem" : fmt::format("{} problems", count));
  for (const Problem& problem : error.problems()) {
    fmt::print(stderr, "  {}: {}\n", problem.field, problem.message);
  }
  return kWrongInput;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  using namespace stepsim;
  try {
    return dispatch({argv + 1, argv + argc});
  } catch (const ConfigError& error) {
    return report_problems(error);
  } catch (const SimulationInterrupted&) {
    fmt::print(stderr, "stepsim: interrupted, nothing was written\n");
    return 128 + interrupt_signal();
  } catch (const DeadlockError& error) {
    fmt::print(stderr, "stepsim: the step never ends\n{}", error.what());
    return kNo;
  } catch (const std::range_error& error) {
    fmt::print(stderr, "stepsim: the step takes longer than simulated time can be (106 days): {}\n",
               error.what());
    return kWrongInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "stepsim: this is a mistake of the program, please report it\n  {}\n",
               error.what());
    return kWrongProgram;
  }
}
