// StepMetrics is what a training step is worth: its time, its tokens, and how much of the chips'
// arithmetic it used. FinishedRun holds a run together for those who write it down (traces/).
//
//   model FLOPs   what the model needs, however it is computed (model_flops() of workload/)
//   MFU           model FLOPs / (step time x ranks x dense peak of the plan's compute type)
//   HFU           the same with the FLOPs of every kernel that ran (recompute, optimizer, ...)
//
// Source: PaLM (Chowdhery et al. 2022), appendix B. Chips without a rank don't count.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/step/placement.h"
#include "experiment/experiment.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"
#include "sim/run/simulation_result.h"
#include "workload/model_counts.h"

namespace stepsim {

std::string_view name_of(AttentionFlops convention);  // "causal", "full"

// Where routing is uneven: what hot experts do to their ranks.
struct ExpertBalance {
  double busiest_over_mean = 1;  // copies of tokens at the busiest rank of ep, of the mean
  double dropped_copies = 0;     // of a step, all layers and ranks: beyond the capacity
  double dropped_fraction = 0;   // of all copies
};

struct StepMetrics {
  Duration step_time{};
  double tokens_per_s = 0;
  double tokens_per_s_per_chip = 0;
  double model_flops = 0;  // of one step
  AttentionFlops convention = AttentionFlops::kCausal;
  Throughput peak_per_chip{};              // dense, of the plan's compute type
  double model_flops_utilization = 0;      // MFU, 0..1
  double hardware_flops_utilization = 0;   // HFU, 0..1
  std::int64_t chips = 0;                  // that hold a rank
  std::optional<ExpertBalance> experts{};  // with a skewed load or a capacity
};

// REQUIRES: result.step_time > 0.
StepMetrics measure(const Experiment& experiment, const SimulationResult& result,
                    AttentionFlops convention = AttentionFlops::kCausal);

// Chip numbers without a rank, ascending.
std::vector<std::uint32_t> idle_chips(const OpGraph& graph, const Cluster& cluster);

// Of each pipeline stage the rank that needs most memory, the lowest of several.
std::vector<RankId> fullest_ranks(const OpGraph& graph, const SimulationResult& result);

// What pushed the memory of a rank to its peak: "block forward: attention, layer 3, micro-batch 7".
// Empty: what it holds from the start.
std::string text_of_peak(const OpGraph& graph, RankId rank, const MemoryPeak& peak);

struct Explanation;

// Everything there is to say about a run. Only refers to it.
struct FinishedRun {
  const Experiment& experiment;
  const Cluster& cluster;
  const OpGraph& graph;
  const SimulationOptions& options;
  const SimulationResult& result;
  const StepMetrics& metrics;
  std::vector<PlacementNote> placement{};    // what the places of the ranks cost
  const Explanation* explanation = nullptr;  // analysis/step/explain.h; nullptr: not asked for
};

}  // namespace stepsim
