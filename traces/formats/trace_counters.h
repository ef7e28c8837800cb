// The counters of a trace: of a rank its memory by category and its micro-batches in flight, and
// of the fabric the utilization of links, in percent.
//
//   "memory: activations"       bytes
//   "micro-batches in flight"   from the start of their forward to the end of their last pass; with
//                               the tokens of a micro-batch, "tokens in flight"
//   "watts"                     what the chip draws: experiment/energy.h
//   "all node*.gpu* > ..."      all links of one kind together
//   "node0.gpu0>node0.nvswitch" a link: traced_links()

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/energy.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"
#include "traces/formats/trace_sink.h"

namespace stepsim {

inline constexpr std::size_t kBusiestTracedLinks = 10;
inline constexpr std::size_t kMostTraceBins = 2000;
inline constexpr std::size_t kMostRanksWithLinks = 32;  // above, only the busiest links are traced

void write_memory(const Timeline& timeline, std::uint32_t process, TraceSink& sink);

void write_in_flight(const OpGraph& graph, const Timeline& timeline, std::uint32_t process,
                     std::optional<std::int64_t> tokens_per_microbatch, TraceSink& sink);

// In whole watts, wherever they change.
void write_watts(const OpGraph& graph, const Timeline& timeline, std::uint32_t process,
                 const KernelEnergy& energy, TraceSink& sink);

// What all links of one kind carried in each of result.link_series' bins.
struct LinkKindLoad {
  std::string kind;        // "node*.gpu* > node*.nvswitch"
  std::int64_t links = 0;  // that were recorded
  double bandwidth = 0;    // of all of them, bytes per second
  std::vector<double> bytes{};
};
// Returns the kinds of which some link carried anything, by name.
std::vector<LinkKindLoad> link_kind_loads(const Cluster& cluster, const SimulationResult& result);

// Writes the process of the links, if any was recorded. `position`: among the processes.
void write_links(const OpGraph& graph, const Cluster& cluster, const SimulationResult& result,
                 std::uint32_t process, std::size_t position, TraceSink& sink);

// Returns the links whose counters a trace shows, ascending: those at the chips of the recorded
// ranks and the ten busiest. Links that carried nothing or were not recorded are left out.
std::vector<LinkId> traced_links(const OpGraph& graph, const Cluster& cluster,
                                 const SimulationResult& result);

// Returns at most `count` links that carried anything, highest utilization first (ties: lowest id).
std::vector<LinkTotal> busiest_links(const SimulationResult& result, std::size_t count);

}  // namespace stepsim
