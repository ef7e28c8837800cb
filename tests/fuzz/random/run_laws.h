// run_laws.h holds what must be true of every run, whatever was simulated, beyond the checks that
// simulate() itself ends with.
//
//   parts    breakdown and critical path add up to the step, categories of memory to the peak
//   limits   no link carries more than it can, nothing computes faster than the chips' peaks
//   order    ops that start in the same instant may start in any order: the same result, byte by
//            byte
//   shares   where communication takes nothing of the chips, links that are shared make no step
//            shorter than links that each transfer has for itself
//   scale    on a cluster that is three times as slow in all, a step takes three times as long,
//            unless a picosecond more on each link changes the step by 0.1 % too
//   record   the record of a run, run again, gives the same result, byte by byte
//   folding  folding_laws.h
//   and those of collective_laws.h
//
// A hash of the result decides which runs are held to scale, record and those of collectives, each
// of which costs runs of its own.

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
