// The always-on checks at the end of a run: they hold in Release too and throw std::logic_error
// with what is wrong. A failing check is a bug of stepsim, never of the user's input.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/network.h"
#include "sim/program/op_graph.h"
#include "sim/run/books/memory_ledger.h"
#include "sim/run/ops/exact_bytes.h"
#include "sim/run/ops/job.h"
#include "sim/run/ops/streams.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// Checks that every op ran once and no stream did two things at once.
void check_streams(const Streams& streams);

// Checks that the integral of every link's rate over time equals the bytes routed over it, within
// 1e-9. Links of a group are checked together. `fabric`: that of the network; `routed`: as
// Transport::routed_bytes(). `has_groups`: the network carries bytes of groups under their own ids,
// as those of flows do, which costs O(1) a group instead of the square of its links.
void check_links(const Fabric& fabric, const std::vector<ExactBytes>& routed,
                 const Network& network, Time end, bool has_groups = false);

// Checks the same for all links of chips together. Sprayed packets take other routes between the
// same chips, which may be longer (Valiant routes of a dragonfly).
void check_sprayed_links(const Fabric& fabric, const std::vector<ExactBytes>& routed,
                         const Network& network, Time end);

// Checks that the bytes that each axis asked for are `steps` times the plan's. Without planned
// bytes there is no check. (More may have been sent if an algorithm forwards, or less if a switch
// adds; the result has the bytes sent.)
void check_planned_bytes(const OpGraph& graph, const std::array<Bytes, kMostAxes>& asked,
                         std::uint32_t steps);

// Checks that every rank's memory is back at its resident bytes.
void check_memory(const Job& job, const MemoryLedger& memory);

// Checks that the parts of the critical path (picoseconds) add up to the window.
void check_path(const std::vector<Duration>& parts, Duration window);

// Checks that every simulated rank's breakdown adds up to the window.
void check_breakdowns(const std::vector<Breakdown>& breakdowns, Duration window);

}  // namespace stepsim
