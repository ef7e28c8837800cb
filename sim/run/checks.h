// The always-on checks at the end of a run: they hold in Release too and throw std::logic_error
// with what is wrong. A failing check is a bug of stepsim, never of the user's input.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/network/network.h"
#include "sim/program/op_graph.h"
#include "sim/run/memory_ledger.h"
#include "sim/run/simulation_result.h"
#include "sim/run/streams.h"

namespace stepsim {

// Every op ran once, and no stream did two things at once.
void check_streams(const Streams& streams);

// The integral of every link's rate over time is what was routed over it, within 1e-9; of links of
// a group, that of all of them. `routed`: as Transport::routed_bytes().
void check_links(const Cluster& cluster, const std::vector<double>& routed, const Network& network,
                 Time end);

// The same for all links together: packets that are sprayed take other routes, of equal length.
void check_sprayed_links(const Cluster& cluster, const std::vector<double>& routed,
                         const Network& network, Time end);

// What had to be sent for each axis, in all steps, is what the plan says for one. (Nothing to check
// without planned bytes. An algorithm may forward, or a switch add: what was really sent is in the
// result.)
void check_planned_bytes(const OpGraph& graph, const std::array<Bytes, kAxes>& asked,
                         std::uint32_t steps);

// Every rank's memory is back at its resident bytes.
void check_memory(const OpGraph& graph, const MemoryLedger& memory);

// The parts of the critical path (picoseconds) add up to the window.
void check_path(const std::vector<std::int64_t>& parts, Duration window);

// Every rank's breakdown adds up to the window.
void check_breakdowns(const SimulationResult& result);

}  // namespace stepsim
