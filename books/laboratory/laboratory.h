// Laboratory is where the studies run. It calls simulate_experiment(), or simulate() for graphs
// made by hand, with the chosen network model.
//
//   const Laboratory laboratory{.fidelity = Fidelity::kFlow};
//   const double seconds = laboratory.seconds(graph, cluster);
//
// On the packet network collectives run stepped. Packets are as small as a run of a few seconds
// allows, from 4 KiB up to 4 MiB. Between neighbours of a ring their size does not matter, because
// no switch stores them on the way. A run that is too long even then is skipped, with the reason.

#pragma once

#include <stdexcept>

#include "experiment/experiment.h"
#include "experiment/simulate_experiment.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"

namespace stepsim {

// StudySkipped means that this network model cannot run a study; what() is the reason.
struct StudySkipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Laboratory {
  Fidelity fidelity = Fidelity::kFlow;
  bool (*progress)(void* context, Time now, std::uint64_t ops_done,
                   std::uint64_t ops_total) = nullptr;  // as in SimulationOptions
  void* progress_context = nullptr;

  // `options` gives granularity, steps and what is recorded. The laboratory sets fidelity and
  // progress. Throws StudySkipped.
  SimulationResult simulate(const OpGraph& graph, const Cluster& cluster,
                            SimulationOptions options = {}) const;

  // Simulates the step of an experiment on `cluster`, which replaces the experiment's own.
  // `options` has the same meaning as above. Throws StudySkipped.
  SimulationResult simulate(const Experiment& experiment, const Cluster& cluster,
                            ExperimentOptions options = {}) const;

  // Simulates on the packet network with options.packets unchanged, whatever the laboratory's
  // fidelity, for effects that only packets show.
  SimulationResult simulate_packets(const OpGraph& graph, const Cluster& cluster,
                                    SimulationOptions options) const;

  // The step time of simulate().
  double seconds(const OpGraph& graph, const Cluster& cluster,
                 const SimulationOptions& options = {}) const;
};

}  // namespace stepsim
