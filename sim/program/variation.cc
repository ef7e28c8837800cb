#include "sim/program/variation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <string>
#include <utility>

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

void check_ranks(const std::vector<RankId>& named, const std::string& field, std::int64_t ranks,
                 std::vector<Problem>& problems) {
  if (named.empty()) problems.push_back({field, "must name a rank"});
  for (const RankId rank : named) {
    if (rank.index() < static_cast<std::size_t>(ranks)) continue;
    problems.push_back({field, "must be ranks of the plan, 0 to " + std::to_string(ranks - 1) +
                                   "; has " + std::to_string(rank.index())});
  }
}

// `before` has the ranks that stand before these.
void check_once(const std::vector<RankId>& named, const std::string& field,
                std::set<RankId>& before, std::vector<Problem>& problems) {
  for (const RankId rank : named) {
    if (before.insert(rank).second) continue;
    problems.push_back(
        {field, "must name each rank once; has " + std::to_string(rank.index()) + " again"});
  }
}

}  // namespace

std::vector<Problem> check(const Variation& variation, std::int64_t ranks) {
  std::vector<Problem> problems = variation_fields().problems(variation);
  std::set<RankId> slowed;
  for (std::size_t i = 0; i < variation.stragglers.size(); ++i) {
    const std::string field = "straggler[" + std::to_string(i) + "].rank";
    check_ranks(variation.stragglers[i].ranks, field, ranks, problems);
    check_once(variation.stragglers[i].ranks, field, slowed, problems);
  }
  std::set<RankId> moved;
  for (std::size_t i = 0; i < variation.exchanges.size(); ++i) {
    const RankExchange& exchange = variation.exchanges[i];
    const std::string field = "exchange[" + std::to_string(i) + "]";
    check_ranks(exchange.ranks, field + ".rank", ranks, problems);
    check_ranks(exchange.with, field + ".with", ranks, problems);
    if (exchange.ranks.size() != exchange.with.size()) {
      problems.push_back({field + ".with", "must be as many ranks as rank, " +
                                               std::to_string(exchange.ranks.size()) + "; has " +
                                               std::to_string(exchange.with.size())});
    }
    check_once(exchange.ranks, field, moved, problems);
    check_once(exchange.with, field, moved, problems);
  }
  return problems;
}

void vary(const Variation& variation, std::uint64_t seed, OpGraph& graph) {
  for (const Straggler& straggler : variation.stragglers) {
    for (const RankId rank : straggler.ranks) {
      graph.ranks[rank.index()].slowdown *= straggler.slowdown;
    }
  }
  for (const RankExchange& exchange : variation.exchanges) {
    for (std::size_t i = 0; i < exchange.ranks.size(); ++i) {
      std::swap(graph.ranks[exchange.ranks[i].index()].chip,
                graph.ranks[exchange.with[i].index()].chip);
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
