// StepMetrics rates a training step: its time, its tokens, and how much of the chips' arithmetic it
// used.
//
//   model FLOPs   what the model needs, however it is computed (model_flops() of workload/)
//   MFU           model FLOPs / (step time x ranks x dense peak of the plan's compute type)
//   HFU           the same with the FLOPs of every kernel that ran (recompute, optimizer, ...)
//
// Source: PaLM (Chowdhery et al. 2022), appendix B. Chips without a rank don't count.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "experiment/experiment.h"
#include "sim/run/simulation_result.h"
#include "workload/model_counts.h"

namespace stepsim {

std::string_view name_of(AttentionFlops convention);  // "causal", "full"

// ExpertBalance says how unevenly tokens go to experts. Shares are of the copies of tokens that the
// router sends: a token has one copy for each expert that it visits.
struct ExpertBalance {
  double busiest_over_mean = 1;  // copies of the busiest rank of ep over the mean rank's
  double dropped_copies = 0;    // per step, over all layers and ranks, beyond the experts' capacity
  double dropped_fraction = 0;  // share of all copies
};

// What a pass of inference adds.
struct PassMetrics {
  Bytes cache_per_token{};  // of a request, in all layers: cache_bytes_per_token()
  Bytes cache{};            // of all requests after the pass, each value counted once
  // Share of the chips' memory bandwidth that weights and cache take, read once each ("model
  // bandwidth utilization"); of passes that generate, with dense models.
  std::optional<double> bandwidth_utilization{};
};

struct StepMetrics {
  Duration step_time{};
  double tokens_per_s = 0;
  double tokens_per_s_per_chip = 0;
  double model_flops = 0;  // for one step
  AttentionFlops convention = AttentionFlops::kCausal;
  Throughput peak_per_chip{};              // dense peak of the plan's compute type
  double model_flops_utilization = 0;      // MFU, 0..1
  double hardware_flops_utilization = 0;   // HFU, 0..1
  std::int64_t chips = 0;                  // chips with a rank
  std::optional<PassMetrics> pass{};       // set for inference
  std::optional<ExpertBalance> experts{};  // set if the load is uneven or capacity is limited
};

// Returns the model FLOPs of a step: without those of weights that are not trained.
double step_flops(const Experiment& experiment, AttentionFlops convention);

// REQUIRES: result.step_time > 0.
StepMetrics measure(const Experiment& experiment, const SimulationResult& result,
                    AttentionFlops convention = AttentionFlops::kCausal);

}  // namespace stepsim
