// random_experiment() makes an experiment file: a small cluster, a plan for it, a model for the
// plan, and how to simulate them. `stepsim run` takes the file.
//
//   Choices choices(17);
//   std::ofstream("17.json") << random_experiment(choices);

#pragma once

#include <string>

#include "tests/fuzz/random/choices.h"

namespace stepsim {

// Returns JSON. Most experiments are good; the others break a rule of `stepsim help plan` or
// docs/topologies.md.
std::string random_experiment(Choices& choices);

}  // namespace stepsim
