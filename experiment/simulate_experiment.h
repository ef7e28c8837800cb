// simulate_experiment() is the only way from an experiment to a result. Everything that needs a
// training step calls it: run, accuracy, the studies, the figures, the benches, the tests.
//
//   const SimulatedExperiment done = simulate_experiment(experiment);
//   done.runs.front().result.step_time
//
// The stages, each a function from values to a value:
//
//   cluster_for_steps()  the hardware                       build_cluster.h
//   pipeline_times()     what a chunk takes, if the schedule is planned by it   pipeline_times.h
//   lower()              the op graph of a step             schedules/lowering/lower.h
//   vary()               stragglers and jitter              sim/program/variation.h
//   simulate()           the step, once for each network model      sim/run/simulate.h
//   measure()            tokens per second, MFU, HFU        step_metrics.h
//
// Equal experiments and options give equal results to the picosecond. Several threads can call it.
// It costs what simulate() costs and, for schedules that are planned by time, a simulation of two
// micro-batches.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/step_metrics.h"
#include "schedules/plan/axis.h"
#include "sim/collectives/collective.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"

namespace stepsim {

struct ExperimentOptions {
  // The network models. Each simulates the same op graph once. Packets cost 10 to 1,000 times as
  // much as flows, and show queues.
  std::vector<Fidelity> fidelities = {Fidelity::kFlow};
  // Simulates a collective as one transfer, or every message of its algorithm. kPacket needs
  // kStepped.
  Granularity granularity = Granularity::kPipelined;
  PacketOptions packets{};                   // for kPacket
  std::optional<TransportSpec> transport{};  // for kPacket: SimulationOptions
  // Training steps in a row. Unset: as many as the plan needs, steps_of(). Each costs as much as
  // the first. More than needed change the result little.
  std::optional<std::uint32_t> steps{};
  std::uint64_t seed = 0;  // seed of the variation's jitter
  AttentionFlops attention_flops = AttentionFlops::kCausal;
  bool explains = false;  // the result is for explain(), which reads one rank of each program
  // Simulates one of all ranks that do the same at the same time (docs/folding.md). Off: every
  // rank, for the same result.
  bool fold = true;
  // With `fold`: does not simulate periods of a step in which it would only repeat itself.
  bool repeats = true;
  // The algorithm of all collectives of an axis. Unset: the choice of the library and `auto`.
  std::array<std::optional<AlgorithmChoice>, kAxes> algorithms{};

  std::vector<RankId> recorded_ranks{};  // keeps their timelines; ascending
  bool record_each_role = false;  // also keeps one rank of each program that they don't cover
  bool share_timelines = false;   // one of all ranks simulated as one: SimulationOptions
  bool record_links = false;      // keeps bytes over time of the links

  // Called once for each simulation, before the first of them starts. It may set the packet size,
  // or throw if the simulation would take too long. May be empty.
  std::function<void(const OpGraph&, const Cluster&, SimulationOptions&)> before{};
  // Called regularly by simulate(). Returning false ends the run with SimulationInterrupted.
  bool (*progress)(void* context, Time now, std::uint64_t ops_done,
                   std::uint64_t ops_total) = nullptr;
  void* progress_context = nullptr;
};

// SimulatedStep is the step on one network model.
struct SimulatedStep {
  SimulationOptions options;
  SimulationResult result;
  StepMetrics metrics;
};

struct SimulatedExperiment {
  OpGraph graph;
  std::vector<SimulatedStep> runs;  // one for each fidelity, in their order
};

// Returns the steps that the plan needs: 2 if a step overlaps with the next one (first gathers of
// FSDP, parameters gathered beside the forward, zb_h2 and similar), otherwise 1.
std::uint32_t steps_of(const ParallelPlan& plan);

// Returns the simulation options that follow from `options` for `graph` on one network model.
SimulationOptions simulation_options(const ExperimentOptions& options, const ParallelPlan& plan,
                                     const OpGraph& graph, Fidelity fidelity);

// REQUIRES: check(experiment, places of the cluster) is empty. Throws what simulate() throws.
SimulatedExperiment simulate_experiment(const Experiment& experiment,
                                        const ExperimentOptions& options = {});

// The same on a given cluster, which replaces the experiment's own.
SimulatedExperiment simulate_experiment(const Experiment& experiment, const Cluster& cluster,
                                        const ExperimentOptions& options = {});

// Returns the op graph that simulate_experiment() simulates, for code that only inspects it.
OpGraph lower_experiment(const Experiment& experiment, const Cluster& cluster,
                         const ExperimentOptions& options = {});

}  // namespace stepsim
