// settings_of() lists the settings of an experiment that the title of a report does not show and
// that a reader would not expect.

#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace stepsim {

// Returns one line each for plan keys that are not at their default, for stragglers and jitter, and
// for --set of anything but the plan; only lines that are not empty. `overrides`: "path=value".
std::vector<std::string> settings_of(const Experiment& experiment,
                                     const std::vector<std::string>& overrides);

}  // namespace stepsim
