// run_random() runs the text of an experiment as `stepsim run --json` does, and says what came of
// it.
//
//   const RandomOutcome outcome = run_random(random_experiment(choices), Laws::kHold);
//   outcome.refused     // why it was not run
//   outcome.broken      // what should never happen
//   outcome.json        // the result

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

// RandomOutcome has one of the three.
struct RandomOutcome {
  std::vector<Problem> refused{};
  std::string broken{};  // the first law that does not hold, or an exception that is no ConfigError
  std::string json{};    // without the statistics of the simulator
};

enum class Laws : std::uint8_t {
  kOfTheRun,  // only the checks that every run makes
  kAll,       // and those of run_laws.h, which run it again
};

RandomOutcome run_random(std::string_view experiment, Laws laws);

// Returns 64 bits of the text (FNV-1a).
std::uint64_t digest_of(std::string_view text);

}  // namespace stepsim
