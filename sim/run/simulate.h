// simulate() replays an op graph on a cluster. It is the only loop of the simulator: it owns the
// event queue, the network and the state of every op, and all of it dies with the call, so several
// simulations can run in several threads.
//
// What it does with an op is in the files beside this one, in the order of an op's life:
//
//   streams.h        when is it ready            compute.h        how long does a kernel run take
//   channels.h       sends and receives          collective_run.h collectives
//   memory_ledger.h  what it allocates           attribution.h    where the time went
//   recorder.h       timelines                   checks.h         the always-on checks
//   deadlock_report.h  why nothing moves any more
//
// Semantics: docs/architecture.md, "What a run means".

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/network/packets/packet_network.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

enum class Fidelity : std::uint8_t { kLatencyBandwidth, kFlow, kPacket };
enum class Granularity : std::uint8_t {
  kPipelined,  // a collective is one transfer over all its edges
  kStepped,    // every message of every step of the algorithm
};
std::string_view name_of(Fidelity fidelity);        // "latency-bandwidth", "flow", "packet"
std::string_view name_of(Granularity granularity);  // "pipelined", "stepped"

struct SimulationOptions {
  Fidelity fidelity = Fidelity::kFlow;
  Granularity granularity = Granularity::kPipelined;  // kPacket: must be kStepped
  PacketOptions packets{};  // kPacket; a router of spraying that is not given is the cluster's
  std::uint32_t steps = 1;
  std::vector<RankId> recorded_ranks{};  // whose timelines are kept; empty: none
  bool record_links = false;             // keep link_series
  std::uint32_t shuffle_seed = 0;  // not 0: simultaneous ops start in a shuffled order (for tests:
                                   // it must not change any number)
  // Called now and then with the simulated time so far; returning false ends the run with
  // SimulationInterrupted. May be empty.
  bool (*progress)(void* context, Time now, std::uint64_t ops_done,
                   std::uint64_t ops_total) = nullptr;
  void* progress_context = nullptr;
};

// The graph can't finish: what() lists the waiting ops, what each waits for, and the cycle.
struct DeadlockError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Members of a communicator issued different collectives: what() names both ranks and ops.
struct MismatchError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SimulationInterrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws std::logic_error when one of the always-on checks fails.
SimulationResult simulate(const OpGraph& graph, const Cluster& cluster,
                          const SimulationOptions& options);

}  // namespace stepsim
