// FinishedRun holds a simulated experiment together for the code that explains it and writes it
// down (explain.h, traces/). StepReport adds the findings.

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

// FinishedRun refers to its parts, which must outlive it.
struct FinishedRun {
  const Experiment& experiment;
  const Cluster& cluster;
  const OpGraph& graph;
  const SimulationOptions& options;
  const SimulationResult& result;
  const StepMetrics& metrics;
};

// Returns the numbers of the chips without a rank, ascending.
std::vector<std::uint32_t> idle_chips(const OpGraph& graph, const Cluster& cluster);

// Returns, for each pipeline stage, the rank that needs most memory; the lowest of several.
std::vector<RankId> fullest_ranks(const OpGraph& graph, const SimulationResult& result);

// Returns the op that raised the memory of a rank to its peak: "block forward: attention, layer 3,
// micro-batch 7". Returns "" if the rank never holds more than at the start.
std::string text_of_peak(const OpGraph& graph, RankId rank, const MemoryPeak& peak);

// Returns whether no rank needs more memory than its chip has, and no host more than it has.
bool fits(const FinishedRun& run);

}  // namespace stepsim
