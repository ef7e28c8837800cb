// The energy of a training step or a pass: what its chips draw, by the chip's power model
// (PowerLimit in sim/chips/chip_spec.h).
//
//   joules of a rank = idle watts x step + joules of each kernel that it runs
//   of a kernel      = joules_of() its arithmetic, at most (limit - idle) x its time
//   watts over time  = idle watts + joules of a run of kernels / its time, while it runs
//
// Idle watts are all but arithmetic: leakage, memory, links. The energy of an operation is the mean
// of chips of the kind, though the step waits for the chip that takes most. Stragglers take as many
// joules in more time.
//
// Chips whose file doesn't say their power, or not the energy of an operation (where what power
// costs is in measured rates), have no energy here: nothing is assumed of them.
//
// Not modelled: hosts, switches, power supplies and cooling (PUE); chips without a rank; what
// memory and links draw more when they are busy; the temperature. It costs O(ops of all programs).

#pragma once

#include <optional>
#include <vector>

#include "experiment/experiment.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// The arithmetic's joules of each run of kernels, and what a chip draws beside them.
struct KernelEnergy {
  double idle_watts = 0;
  std::vector<double> joules{};  // by OpGraph::compute_works
};

// Returns nullopt if the chip doesn't say its power (above). `cluster`: that of the experiment's
// steps.
std::optional<KernelEnergy> energy_of_kernels(const Experiment& experiment, const Cluster& cluster,
                                              const OpGraph& graph);

struct StepEnergy {
  double joules = 0;               // of all chips with a rank, in one step
  double joules_per_token = 0;     // of training; of a pass: a new token of a request
  double mean_watts_per_chip = 0;  // over the step
  double peak_watts_per_chip = 0;  // in the run of kernels that draws most
  double idle_watts_per_chip = 0;
};

// Returns nullopt if the chip doesn't say its power (above). REQUIRES: result.step_time > 0.
std::optional<StepEnergy> energy_of_step(const Experiment& experiment, const Cluster& cluster,
                                         const OpGraph& graph, const SimulationResult& result);

// What a chip draws from an instant on.
struct WattsSample {
  Time at;
  double watts = 0;
};

// Returns what the chip of a recorded rank draws, in order of time; the first is at 0.
std::vector<WattsSample> watts_over_time(const OpGraph& graph, const Timeline& timeline,
                                         const KernelEnergy& energy);

}  // namespace stepsim
