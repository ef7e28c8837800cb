// simulate() replays an op graph on a cluster. It is the only loop of the simulator: it owns the
// event queue, the network and the state of every op, and all of it dies with the call, so several
// simulations can run in several threads.
//
// The parts of the loop are in the folders below this one, in the order of an op's life:
//
//   ops/          streams.h: when an op is ready; compute_runs.h: how long a run of kernels takes;
//                 channels.h: sends and receives; host_runs.h: copies to the host; transport.h:
//                 how transfers reach the network; critical_path.h: the longest chain of causes
//   collectives/  what a collective does, and how far each one has come
//   books/        memory_ledger.h: what an op allocates; attribution.h: where the time went;
//                 recorder.h: timelines
//   folding/      which ranks do the same at the same time, so that one of them is simulated
//   repeats.h     which periods only repeat those before, so that they are not simulated
//
// At the end: summary.h, the totals; checks.h, the always-on checks; deadlock_report.h, why nothing
// moves any more. Semantics: docs/architecture.md, "What a run means".

#pragma once

#include <cstdint>
#include <stdexcept>

#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/mismatch_error.h"
#include "sim/run/simulation_options.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// DeadlockError means that the graph cannot finish. what() lists the waiting ops, what each waits
// for, and the cycle.
struct DeadlockError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SimulationInterrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// StepTooLong means that the step takes longer than SimulationOptions::limit. `ops`: of the whole
// run.
struct StepTooLong : std::runtime_error {
  explicit StepTooLong(std::uint64_t ops_of_run)
      : std::runtime_error("the step takes longer than its limit"), ops(ops_of_run) {}
  std::uint64_t ops = 0;
};

// Throws DeadlockError, MismatchError (sends and receives, or members of a collective, that
// disagree), and std::logic_error if an always-on check fails.
SimulationResult simulate(const OpGraph& graph, const Cluster& cluster,
                          const SimulationOptions& options);

}  // namespace stepsim
