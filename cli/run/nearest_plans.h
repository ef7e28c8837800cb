// What `stepsim run` says below a plan that does not fit: plans near it that do, simulated.

#pragma once

#include <string>

#include "experiment/experiment.h"
#include "sim/network/places.h"

namespace stepsim {

// Returns the three fastest of the plans that divide more (tp, pp and cp doubled, a higher zero),
// keep less (recompute) or do less at once (a smaller micro-batch), by what they change; if none of
// them fits, those that need least memory, and by how much that is too much. Simulates at most some
// ten plans on the same chips. REQUIRES: the plan keeps the rules, and every chip has a rank.
std::string nearest_plans(const Experiment& experiment, const Places& places);

}  // namespace stepsim
