// folding_laws.h holds what must be true of a folded run: it gives every number of the run of all
// ranks, for every rank, link and host, and the timelines of all ranks; and it keeps ranks apart
// whose timelines differ.
//
// The run is held to it as it is, and again with one straggler, with one slow link and with one
// failed link put somewhere.

#pragma once

#include <string>

#include "proto/load_experiment.h"
#include "tests/fuzz/random/choices.h"

namespace stepsim {

// Returns the first difference; "" if there is none, or if the run can't be folded. Packets and
// stepped collectives are replaced by flows and pipelined ones, which fold.
std::string broken_folding(const LoadedExperiment& loaded, Choices& choices);

}  // namespace stepsim
