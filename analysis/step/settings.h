// settings_of() names what an experiment sets that the title of a report doesn't show: what tells
// it from the plan that a reader would expect.

#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace stepsim {

// A line each, those that have something to say: keys of the plan that are not at their default,
// stragglers and jitter, and the --set of anything but the plan. `overrides`: "path=value".
std::vector<std::string> settings_of(const Experiment& experiment,
                                     const std::vector<std::string>& overrides);

}  // namespace stepsim
