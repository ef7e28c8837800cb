#include "sim/program/variation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "sim/program/op_graph.h"
#include "sim/program/variation_fields.h"

namespace stepsim {
namespace {

constexpr double kFarthest = 6;  // standard deviations; times the largest jitter (0.15): below 1

// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

// Returns a number in (0, 1).
double uniform(std::uint64_t hash) {
  return (static_cast<double>(hash >> 11U) + 0.5) * 0x1p-53;
}

}  // namespace

std::vector<Problem> check(const Variation& variation, std::int64_t ranks) {
  std::vector<Problem> problems = variation_fields().problems(variation);
  for (std::size_t i = 0; i < variation.stragglers.size(); ++i) {
    const Straggler& straggler = variation.stragglers[i];
    const std::string field = "straggler[" + std::to_string(i) + "]";
    if (straggler.ranks.empty()) problems.push_back({field + ".rank", "must name a rank"});
    for (const RankId rank : straggler.ranks) {
      if (rank.index() < static_cast<std::size_t>(ranks)) continue;
      problems.push_back({field + ".rank", "must be ranks of the plan, 0 to " +
                                               std::to_string(ranks - 1) + "; has " +
                                               std::to_string(rank.index())});
    }
  }
  return problems;
}

void vary(const Variation& variation, std::uint64_t seed, OpGraph& graph) {
  for (const Straggler& straggler : variation.stragglers) {
    for (const RankId rank : straggler.ranks) {
      graph.ranks[rank.index()].slowdown *= straggler.slowdown;
    }
  }
  graph.jitter = {.deviation = variation.jitter, .seed = seed};
}

// The method of Box and Muller turns two uniform numbers into a normal one.
double factor_of(const Jitter& jitter, std::uint32_t step, RankId rank, OpId op) {
  const std::uint64_t place = (std::uint64_t{rank.index()} << 32U) | op.index();
  const std::uint64_t first = mix(mix(mix(jitter.seed) ^ step) ^ place);
  const double radius = std::sqrt(-2 * std::log(uniform(first)));
  const double z = radius * std::cos(2 * std::numbers::pi * uniform(mix(first)));
  return 1 + jitter.deviation * std::clamp(z, -kFarthest, kFarthest);
}

}  // namespace stepsim
