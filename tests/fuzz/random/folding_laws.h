// folding_laws.h holds what must be true of a folded run: it gives every number of the run of all
// ranks, for every rank, link and host, and the timelines of all ranks; and it keeps ranks apart
// whose timelines differ.
//
// Repeats: periods that are not simulated because the run would only repeat itself change nothing.
//
// The run is held to the first as it is, and again with one straggler, with one slow link and with
// one failed link put somewhere.

#pragma once

#include <cstdint>
#include <string>

#include "proto/load_experiment.h"
#include "tests/fuzz/random/choices.h"

namespace stepsim {

// Returns the first difference between the run of a step of many micro-batches that skips periods
// in which it would repeat itself, and the run that doesn't; "" if there is none. `skipped` is set
// to the ops that were not simulated.
std::string broken_repeats(const LoadedExperiment& loaded, std::uint64_t& skipped);

// Returns the first difference; "" if there is none, or if the run can't be folded. Packets and
// stepped collectives are replaced by flows and pipelined ones, which fold.
std::string broken_folding(const LoadedExperiment& loaded, Choices& choices);

}  // namespace stepsim
