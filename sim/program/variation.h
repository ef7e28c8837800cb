// Variation makes chips unequal: stragglers, which are slower all the time, jitter, by which each
// run of kernels takes a little longer or shorter than the one before, and exchanges of places.
//
// Jitter multiplies the time of a run of kernels by 1 + deviation x z, where z is standard normal
// and a hash of (seed, step, rank, op): the same whatever else happens in the run, and in whatever
// order. z is cut off at +-6, so the factor stays positive.
//
// Exchanges move ranks to other chips than their plan's, as a spare node that is far away does.
//
// Noise that comes in bursts or that several ranks share is not modelled. Links don't vary; they
// have faults (topology/faults.h).

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/ids.h"

namespace stepsim {

struct OpGraph;

struct Straggler {
  std::vector<RankId> ranks{};
  double slowdown = 1;  // kernels take this times longer
};

// Ranks on one another's chips, one by one: a node that stands where another should.
struct RankExchange {
  std::vector<RankId> ranks{};
  std::vector<RankId> with{};
};

struct Variation {
  std::vector<Straggler> stragglers{};
  std::vector<RankExchange> exchanges{};
  double jitter = 0;  // standard deviation of a run of kernels, as a fraction of its time
};

// Returns values outside the limits of variation_fields.h, and ranks that are not among `ranks`.
std::vector<Problem> check(const Variation& variation, std::int64_t ranks);

// If a rank is named several times, its slowdowns multiply. REQUIRES: check() is empty.
void vary(const Variation& variation, std::uint64_t seed, OpGraph& graph);

struct Jitter {
  double deviation = 0;
  std::uint64_t seed = 0;
};

// Returns the time of op `op` of `rank` in this step as a multiple of its time without jitter.
double factor_of(const Jitter& jitter, std::uint32_t step, RankId rank, OpId op);

}  // namespace stepsim
