// simulate_experiment() is the one way from an experiment to a result. Whatever asks for a training
// step calls it: run, accuracy, the studies, the figures, the benches, the tests.
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
// Equal experiments and options give equal results to the picosecond. Several calls can run in
// several threads. Costs what simulate() costs; for schedules that are planned by time also a
// simulation of two micro-batches.

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
  // Network models, one simulation each of the same op graph. Packets cost 10 to 1,000 times what
  // flows cost, and show queues.
  std::vector<Fidelity> fidelities = {Fidelity::kFlow};
  // Whether a collective is one transfer or every message of its algorithm. kPacket needs kStepped.
  Granularity granularity = Granularity::kPipelined;
  PacketOptions packets{};  // kPacket
  // Training steps in a row. Not given: as many as the plan needs, steps_of(). Each costs as much
  // as the first; more than needed change little.
  std::optional<std::uint32_t> steps{};
  std::uint64_t seed = 0;  // draws the variation's jitter
  AttentionFlops attention_flops = AttentionFlops::kCausal;
  // The algorithm of all collectives of an axis. Not given: what the library and `auto` choose.
  std::array<std::optional<AlgorithmChoice>, kAxes> algorithms{};

  std::vector<RankId> recorded_ranks{};  // their timelines are kept; ascending
  bool record_each_role = false;         // and one rank of each program that they don't cover
  bool record_links = false;             // keep bytes over time of the links

  // Called once for each simulation, before the first of them starts. It may say how large packets
  // are, or throw if the simulation would be too long. May be empty.
  std::function<void(const OpGraph&, const Cluster&, SimulationOptions&)> before{};
  // Called now and then by simulate(): returning false ends the run with SimulationInterrupted.
  bool (*progress)(void* context, Time now, std::uint64_t ops_done,
                   std::uint64_t ops_total) = nullptr;
  void* progress_context = nullptr;
};

// The step on one network model.
struct SimulatedStep {
  SimulationOptions options;
  SimulationResult result;
  StepMetrics metrics;
};

struct SimulatedExperiment {
  OpGraph graph;
  std::vector<SimulatedStep> runs;  // in order of the fidelities
};

// Steps that the plan needs: 2 if a step overlaps with the next one (first gathers of FSDP,
// parameters gathered beside the forward, zb_h2 and alike), else 1.
std::uint32_t steps_of(const ParallelPlan& plan);

// The simulation options that `options` mean for `graph` on one network model.
SimulationOptions simulation_options(const ExperimentOptions& options, const ParallelPlan& plan,
                                     const OpGraph& graph, Fidelity fidelity);

// REQUIRES: check(experiment, places of the cluster) is empty. Throws what simulate() throws.
SimulatedExperiment simulate_experiment(const Experiment& experiment,
                                        const ExperimentOptions& options = {});

// The same on a cluster that was built before, in place of the experiment's own.
SimulatedExperiment simulate_experiment(const Experiment& experiment, const Cluster& cluster,
                                        const ExperimentOptions& options = {});

// The op graph that simulate_experiment() simulates, for those who only look at it.
OpGraph lower_experiment(const Experiment& experiment, const Cluster& cluster,
                         const ExperimentOptions& options = {});

}  // namespace stepsim
