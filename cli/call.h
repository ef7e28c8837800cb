// call() runs a subcommand for a program: the same code as `stepsim NAME ARGUMENTS`, with what it
// would print as text. So whatever a program gets is what the command line writes, byte for byte.
//
//   const Called run = call("run", {"llama3-8b-dgx-h100-8", "--json=memory:json"});
//   run.kept.at("json")    // the file that --json would have written
//   run.output             // the table
//
// Several threads can call it. Results do not depend on that.

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/subcommand.h"

namespace stepsim {

struct Called {
  ExitStatus status = ExitStatus::kDone;
  std::string output;
  std::string errors;
  std::map<std::string, std::string> kept;  // outputs to "memory:NAME", by NAME
};

// `goes_on` is asked now and then; returning false ends the work with SessionStopped. `part` is
// called with what is known before the rest (session.h). Both may be empty. Throws what subcommands
// throw: ConfigError with all problems, DeadlockError, std::range_error.
Called call(const std::string& subcommand, const std::vector<std::string>& arguments,
            std::function<bool()> goes_on = {}, std::function<void(const std::string&)> part = {});

}  // namespace stepsim
