// PassTimes says how long passes of one plan take, for any batch of requests: thousands of batches
// a second, of which few are simulated.
//
//   PassTimes times(experiment, cluster, {});
//   const Duration decode = times.of({.groups = {{.sequences = 64, .cached = 2000, .generates =
//   true}}});
//
// In a pass one thing follows the other, so its time is a sum:
//
//   T(batch) = mixing(batch) + P(tokens) + [D(outputs) - P(outputs)]
//
// With dispatch = auto, D of this sum is of passes whose tokens travel as those of P do
// (experiment/pass_dispatch.h); a batch in which all requests generate has a D of its own.
//
// mixing is the time of the kernels that depend on contexts (TokenMixing), summed over all layers.
// P(n) is what remains of a simulated pass over one prompt of n tokens, and D(n) of one in which n
// requests generate: they differ by the head, which a prompt needs for its last token only.
//
// P and D are simulated where they are asked for, and interpolated between points n and 2 n or
// nearer once two passes in between were simulated that the line misses by at most `kMostError`.
// Precision::kExact simulates every batch.
//
// REQUIRES of the experiment: a plan of inference without problems. Not thread-safe.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "experiment/experiment.h"
#include "experiment/simulate_experiment.h"
#include "sim/base/units.h"
#include "sim/hardware/cluster.h"
#include "workload/inference.h"

namespace stepsim {

class PassTimes {
 public:
  enum class Precision : std::uint8_t { kInterpolated, kExact };
  static constexpr double kMostError = 0.002;  // of a time

  // All three are copied.
  PassTimes(Experiment experiment, Cluster cluster, ExperimentOptions options,
            Precision precision = Precision::kInterpolated);
  PassTimes(const PassTimes&) = delete;
  PassTimes& operator=(const PassTimes&) = delete;

  // Returns the time of a pass over the requests of a replica. REQUIRES: at least one group.
  // Batches of other cache types than the plan's are taken to have the plan's.
  Duration of(const RequestBatch& batch);

  // Simulates the pass.
  Duration simulated(const RequestBatch& batch);

  const Cluster& cluster() const { return cluster_; }
  std::uint64_t simulations() const { return simulations_; }

 private:
  // What remains of passes without mixing, by the number of tokens.
  struct Curve {
    bool generates = false;
    bool beside_prompts = false;  // generates: tokens travel as in a pass that has prompts, too
    std::map<std::int64_t, Duration> points{};
    std::set<std::pair<std::int64_t, std::int64_t>> straight{};  // intervals of points
  };

  Duration mixing(const RequestBatch& batch) const;
  Curve& outputs_beside_prompts();
  Duration at(Curve& curve, std::int64_t tokens);
  Duration point(Curve& curve, std::int64_t tokens);
  bool is_straight(Curve& curve, std::int64_t low, std::int64_t high);

  Experiment experiment_;
  Cluster cluster_;
  ExperimentOptions options_;
  Precision precision_;
  TokenMixing mixing_;
  Curve prompts_{.generates = false};
  Curve generations_{.generates = true};
  Curve beside_prompts_{.generates = true, .beside_prompts = true};
  std::uint64_t simulations_ = 0;
};

}  // namespace stepsim
