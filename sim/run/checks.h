// The always-on checks at the end of a run: they hold in Release too and throw std::logic_error
// with what is wrong. A failing check is a bug of stepsim, never of the user's input.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/network/network.h"
#include "sim/program/op_graph.h"
#include "sim/run/books/memory_ledger.h"
#include "sim/run/ops/streams.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// Every op ran once, and no stream did two things at once.
void check_streams(const Streams& streams);

// The integral of every link's rate over time is what was routed over it, within 1e-9. Links of a
// group are checked together. `routed`: as Transport::routed_bytes().
void check_links(const Cluster& cluster, const std::vector<double>& routed, const Network& network,
                 Time end);

// The same for all links together: packets that are sprayed take other routes, of equal length.
void check_sprayed_links(const Cluster& cluster, const std::vector<double>& routed,
                         const Network& network, Time end);

// The bytes that each axis asked for are `steps` times what the plan says. No planned bytes: no
// check. (More may have been sent, where an algorithm forwards, or less, where a switch adds: the
// result has what was really sent.)
void check_planned_bytes(const OpGraph& graph, const std::array<Bytes, kMostAxes>& asked,
                         std::uint32_t steps);

// Every rank's memory is back at its resident bytes.
void check_memory(const OpGraph& graph, const MemoryLedger& memory);

// The parts of the critical path (picoseconds) add up to the window.
void check_path(const std::vector<std::int64_t>& parts, Duration window);

// Every rank's breakdown adds up to the window.
void check_breakdowns(const SimulationResult& result);

}  // namespace stepsim
