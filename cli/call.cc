#include "cli/call.h"

#include <algorithm>
#include <utility>

#include "cli/help/help.h"
#include "cli/session/session.h"
#include "cli/subcommands.h"
#include "sim/run/simulate.h"

namespace stepsim {

Called call(const std::string& name, const std::vector<std::string>& arguments,
            std::function<bool()> goes_on, std::function<void(const std::string&)> part) {
  const Subcommand& subcommand = find_subcommand(name);
  Session session{.goes_on = std::move(goes_on), .part = std::move(part)};
  Called called;
  try {
    const InSession here(session);
    called.status = subcommand.run(arguments);
  } catch (const SimulationInterrupted&) {
    throw SessionStopped();
  }
  called.output = std::move(session.output);
  called.errors = std::move(session.errors);
  called.kept = std::move(session.kept);
  return called;
}

}  // namespace stepsim
