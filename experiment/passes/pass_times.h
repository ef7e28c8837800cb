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
// With context ranks (cp above 1: prompts only) tokens are those of a chip, k prompts of a token
// each stand for D(k), and keys and values that lie in the cache are gathered too:
//
//   T(batch) = mixing(batch) + P(tokens) + [D(outputs) - P(outputs)] + [G(all keys) - G(new keys)]
//
// where G(n) is what remains of a pass over one new token of a chip behind n - 1 tokens of its
// cache.
//
// T is no sum where a ring of context ranks sends beside mixing, where experts on chips of their
// own work beside it, and where kernels wait for their launches (plan_of_pass()). There each batch
// is simulated, once, and of requests that generate, all with one new token, the time is
// interpolated over their mean context.
//
// P, D and G are simulated where they are asked for, and interpolated between points n and 2 n or
// nearer once two passes in between were simulated that the line misses by at most `kMostError`: in
// wide intervals one whose matmuls just begin a tile, and one whose matmuls fill theirs.
// Precision::kEveryBatch simulates every batch.
//
// REQUIRES of the experiment: a plan of inference without problems; of batches, with context ranks:
// no group generates. Not thread-safe.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/simulate_experiment.h"
#include "sim/base/units.h"
#include "sim/hardware/cluster.h"
#include "workload/inference.h"

namespace stepsim {

class PassTimes {
 public:
  enum class Precision : std::uint8_t { kInterpolated, kEveryBatch };
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
  enum class Passes : std::uint8_t {
    kPrompt,      // P: one prompt
    kOutputs,     // D: requests that generate, or prompts of a token each on context ranks
    kCachedKeys,  // G: a new token of each context rank behind the rest
    kContexts,    // whole passes of so many requests that generate, by the tokens of their contexts
  };
  // What remains of passes without mixing, by the number of tokens.
  struct Curve {
    Passes passes = Passes::kPrompt;
    std::int64_t requests = 0;    // kContexts
    bool beside_prompts = false;  // outputs: tokens travel as in a pass that has prompts, too
    std::map<std::int64_t, Duration> points{};
    std::set<std::pair<std::int64_t, std::int64_t>> straight{};  // intervals of points
  };

  Duration mixing(const RequestBatch& batch) const;
  RequestBatch batch_at(const Curve& curve, std::int64_t tokens) const;
  Duration gathers_of_cached(const RequestBatch& batch);
  bool is_sum(const RequestBatch& batch);
  Duration whole(const RequestBatch& batch);
  Curve& outputs_beside_prompts();
  Duration at(Curve& curve, std::int64_t tokens);
  Duration point(Curve& curve, std::int64_t tokens);
  bool is_straight(Curve& curve, std::int64_t low, std::int64_t high);

  Experiment experiment_;
  Cluster cluster_;
  ExperimentOptions options_;
  Precision precision_;
  TokenMixing mixing_;
  Curve prompts_{.passes = Passes::kPrompt};
  Curve outputs_{.passes = Passes::kOutputs};
  Curve outputs_beside_prompts_{.passes = Passes::kOutputs, .beside_prompts = true};
  Curve cached_keys_{.passes = Passes::kCachedKeys};
  std::map<std::int64_t, Curve> contexts_{};                              // by requests
  std::map<std::vector<std::array<std::int64_t, 4>>, Duration> known_{};  // batches
  std::uint64_t simulations_ = 0;
};

}  // namespace stepsim
