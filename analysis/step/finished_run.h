// FinishedRun holds a simulated experiment together for those who explain it and write it down
// (explain.h, traces/). StepReport adds what was found out about it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/step_metrics.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

// Refers to its parts, which must live as long.
struct FinishedRun {
  const Experiment& experiment;
  const Cluster& cluster;
  const OpGraph& graph;
  const SimulationOptions& options;
  const SimulationResult& result;
  const StepMetrics& metrics;
};

// Numbers of the chips without a rank, ascending.
std::vector<std::uint32_t> idle_chips(const OpGraph& graph, const Cluster& cluster);

// The rank of each pipeline stage that needs most memory, the lowest of several.
std::vector<RankId> fullest_ranks(const OpGraph& graph, const SimulationResult& result);

// The op that pushed the memory of a rank to its peak: "block forward: attention, layer 3,
// micro-batch 7". Empty if the rank never holds more than from the start.
std::string text_of_peak(const OpGraph& graph, RankId rank, const MemoryPeak& peak);

// True if no rank needs more memory than its chip has, and no host more than it has.
bool fits(const FinishedRun& run);

}  // namespace stepsim
