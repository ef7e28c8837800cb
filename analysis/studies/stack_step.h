// Training steps of the sources' own model (workload/mlp_stack.h) under their own assumptions:
// chips that reach their peak in every kernel and are never bound by memory, hops that take no
// time, bf16 everywhere, no optimizer. What a plan adds to the closed form is then the plan's
// alone.
//
//   StackStep step{.tokens = 850, .map = "dp:x+y+z"};   // 850 tokens a replica on v5p 4x4x4
//   step.plan.dp = 64;
//   run(laboratory, step).step_time

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/studies/study.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

inline constexpr double kV5pFlops = 459e12;  // FLOP/s
inline constexpr double kV5pLink = 90e9;     // B/s, one way
inline constexpr double kV5pAxis = 180e9;    // B/s, both directions of an axis

// Every axis of the slice is a ring; two chips have one cable.
Cluster ideal_v5p(const std::vector<int>& shape);

struct StackStep {
  std::int64_t width = 8192;       // D
  std::int64_t mlp_width = 32768;  // F
  std::int64_t layers = 32;
  ParallelPlan plan{};      // global_batch, microbatch and sequence are set from the tokens
  std::int64_t tokens = 0;  // of one replica and micro-batch
  std::int64_t microbatches = 1;
  std::string map{};  // "dp:x+y/tp:z": axes over the slice's; empty: in order of ranks
  std::vector<int> slice = {4, 4, 4};
  Granularity granularity = Granularity::kPipelined;
  bool optimizer = false;  // Adam: its time and its state
  bool record = false;     // keep the timeline of rank 0
  // Of all collectives of the axis, instead of what `auto` chooses.
  std::optional<AlgorithmChoice> data_algorithm{};
  std::optional<AlgorithmChoice> tensor_algorithm{};
};

// As many steps as the plan needs: steps_of() of experiment/simulate_experiment.h. Throws
// std::logic_error for a plan that can't be.
SimulationResult run(const Laboratory& laboratory, const StackStep& step);
SimulationResult run(const Laboratory& laboratory, const StackStep& step, const Cluster& cluster);

double seconds(const Laboratory& laboratory, const StackStep& step);

// Seconds of a step of collective matmuls in `chunks` on packets, first come first served, the
// least and the most. `m`: a layer's forward, `k`: what the gather and the reduce-scatter of its
// activations take in a pass, no longer than m; `rest`: what else there is in the step.
//
// In each round of the backward's first chunk its message waits for one of the input that is
// gathered again in the background, which is `chunks` times as long: the first chunk comes when the
// background is done, after k / 2, the others at once behind it, faster than they are multiplied.
// So k / 2 and a chunk of it are left before the m / 2 of the matmul that was to hide them, beside
// the chunk that the forward leaves, k / chunks. In the first round the chunk's message may be the
// earlier one, which saves one chunk's matmul.
std::pair<double, double> collective_matmuls_on_packets(double layers, double m, double k,
                                                        double chunks, double rest);

// Bytes: the least that rank 0 holds of weights, gradients and optimizer at any time; what is
// gathered or not reduced yet comes on top. REQUIRES: the step was recorded.
double least_state(const SimulationResult& result);

// A ring of n moves (n-1)/n of what the formulas count.
inline double of_a_ring(double ways) {
  return (ways - 1) / ways;
}

}  // namespace stepsim
