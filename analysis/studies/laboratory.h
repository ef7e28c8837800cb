// Laboratory is where the studies run: simulate_experiment(), or simulate() for graphs made by
// hand, with the network model that was asked for.
//
//   const Laboratory laboratory{.fidelity = Fidelity::kFlow};
//   const double seconds = laboratory.seconds(graph, cluster);
//
// On the packet network collectives run stepped, and packets are as small as a run of a few
// seconds allows: from 4 KiB up to 4 MiB. Between neighbours of a ring their size changes nothing,
// because nobody stores them on the way. What is too long even then is skipped, with the reason.

#pragma once

#include <stdexcept>

#include "experiment/experiment.h"
#include "experiment/simulate_experiment.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"

namespace stepsim {

// A study that this network model can't run; what() is the reason.
struct StudySkipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Laboratory {
  Fidelity fidelity = Fidelity::kFlow;
  bool (*progress)(void* context, Time now, std::uint64_t ops_done,
                   std::uint64_t ops_total) = nullptr;  // as in SimulationOptions
  void* progress_context = nullptr;

  // `options` says granularity, steps and what is recorded; fidelity and progress are the
  // laboratory's. Throws StudySkipped.
  SimulationResult simulate(const OpGraph& graph, const Cluster& cluster,
                            SimulationOptions options = {}) const;

  // The step of an experiment on `cluster`, in place of its own. `options` says the same as above.
  // Throws ExperimentSkipped.
  SimulationResult simulate(const Experiment& experiment, const Cluster& cluster,
                            ExperimentOptions options = {}) const;

  // On the packet network whatever the laboratory's, with options.packets as they are: for what
  // only packets show.
  SimulationResult simulate_packets(const OpGraph& graph, const Cluster& cluster,
                                    SimulationOptions options) const;

  // The step time of simulate().
  double seconds(const OpGraph& graph, const Cluster& cluster,
                 const SimulationOptions& options = {}) const;
};

}  // namespace stepsim
