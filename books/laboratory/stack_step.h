// Training steps of the sources' own model (workload/mlp_stack.h) under their own assumptions:
// chips reach their peak in every kernel and are never bound by memory, hops take no time,
// everything is bf16, and there is no optimizer. So every difference to the closed form comes from
// the plan alone.
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

#include "books/laboratory/study.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

inline constexpr double kV5pFlops = 459e12;  // FLOP/s
inline constexpr double kV5pLink = 90e9;     // B/s, one way
inline constexpr double kV5pAxis = 180e9;    // B/s, both directions of an axis

// Returns a slice whose axes are all rings; two chips have one cable.
Cluster ideal_v5p(const std::vector<int>& shape);

struct StackStep {
  std::int64_t width = 8192;       // D
  std::int64_t mlp_width = 32768;  // F
  std::int64_t layers = 32;
  // Its global_batch, microbatch and sequence are set from the tokens. With {} instead of (), GCC
  // 12 destroys it twice if the initializer of a later member throws.
  ParallelPlan plan = ParallelPlan();
  std::int64_t tokens = 0;  // per replica and micro-batch
  std::int64_t microbatches = 1;
  std::string map{};  // "dp:x+y/tp:z": plan axes over the slice's axes; empty: in order of ranks
  std::vector<int> slice = {4, 4, 4};
  Granularity granularity = Granularity::kPipelined;
  bool optimizer = false;  // adds Adam: its time and its state
  bool record = false;     // keep the timeline of rank 0
  // The algorithm of all collectives of the axis, instead of the choice of `auto`.
  std::optional<AlgorithmChoice> data_algorithm{};
  std::optional<AlgorithmChoice> tensor_algorithm{};
};

// Simulates training steps of `model` under `plan` on `cluster`. Throws std::logic_error for a plan
// that is not valid.
SimulationResult simulate(const Laboratory& laboratory, const ModelSpec& model,
                          const ParallelPlan& plan, const Cluster& cluster,
                          const ExperimentOptions& options = {});

// Runs as many steps as the plan needs: steps_of() of experiment/simulate_experiment.h. Throws
// std::logic_error for a plan that is not valid.
SimulationResult run(const Laboratory& laboratory, const StackStep& step);
SimulationResult run(const Laboratory& laboratory, const StackStep& step, const Cluster& cluster);

double seconds(const Laboratory& laboratory, const StackStep& step);

// Returns the least and the most seconds of a step of collective matmuls in `chunks` on packets,
// first come first served. `m`: a layer's forward; `k`: the gather and the reduce-scatter of its
// activations in a pass, no longer than m; `rest`: the remaining time of the step.
//
// In the backward an input is gathered again in the background, in messages that are `chunks` times
// as long. In each round of the first chunk, the chunk's message waits for one of those. So the
// first chunk arrives when the background is done, after k / 2. The others follow at once, faster
// than they are multiplied. So k / 2 and a chunk of it remain before the m / 2 of the matmul that
// should hide them. The forward leaves a chunk too, k / chunks. In the first round the chunk's
// message may be the earlier one, which saves one chunk's matmul.
std::pair<double, double> collective_matmuls_on_packets(double layers, double m, double k,
                                                        double chunks, double rest);

// Returns the least bytes that rank 0 holds of weights, gradients and optimizer at any time.
// Gathered weights and gradients that are not reduced yet come on top. REQUIRES: the step was
// recorded.
double least_state(const SimulationResult& result);

// Returns (n-1)/n: the share that a ring of n moves of what the formulas count.
inline double of_a_ring(double ways) {
  return (ways - 1) / ways;
}

}  // namespace stepsim
