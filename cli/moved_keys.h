// What a command says of files that have keys where 0.1 had them.

#pragma once

#include "proto/load_experiment.h"

namespace stepsim {

// Says once, on standard error, which keys of the files are in another group now. docs/versioning.md
// says how long they are read.
void say_moved_keys(const ExperimentSource& source);

}  // namespace stepsim
