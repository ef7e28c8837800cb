// run_laws.h holds what must be true of every run, whatever was simulated, beyond the checks that
// simulate() itself ends with.
//
//   parts    breakdown and critical path add up to the step, categories of memory to the peak
//   limits   no link carries more than it can, nothing computes faster than the chips' peaks
//   order    ops that start in the same instant may start in any order: the same result, but for
//   the
//            last digits of what links carried, and which of several causes of one instant stands
//            on the critical path

#pragma once

#include <string>

#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// Returns the JSON of `stepsim run`, without the statistics of the simulator.
std::string json_of_run(const LoadedExperiment& loaded, const Cluster& cluster,
                        const SimulatedExperiment& done);

// Returns the first law that the run breaks, with its numbers; "" if all hold. `json` is that of
// json_of_run().
std::string broken_law(const LoadedExperiment& loaded, const Cluster& cluster,
                       const SimulatedExperiment& done, const std::string& json);

}  // namespace stepsim
