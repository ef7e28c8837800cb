#include "experiment/step/rank_spread.h"

#include <algorithm>
#include <functional>
#include <map>

namespace stepsim {
namespace {

constexpr std::size_t kListedSlow = 3;
constexpr std::int64_t kSlowerPart = 200;  // one part in so many

// Adds `more` to `sum`.
void accumulate_parts(const Breakdown& more, Breakdown& sum) {
  sum.compute += more.compute;
  sum.bubble += more.bubble;
  sum.idle += more.idle;
  sum.launch += more.launch;
  for (std::size_t axis = 0; axis < kMostAxes; ++axis) {
    sum.exposed_communication[axis] += more.exposed_communication[axis];
  }
}

Breakdown divided(const Breakdown& sum, std::int64_t by) {
  Breakdown part{.compute = sum.compute / by,
                 .bubble = sum.bubble / by,
                 .idle = sum.idle / by,
                 .launch = sum.launch / by};
  for (std::size_t axis = 0; axis < kMostAxes; ++axis) {
    part.exposed_communication[axis] = sum.exposed_communication[axis] / by;
  }
  return part;
}

}  // namespace

RankSpread rank_spread(const OpGraph& graph, const SimulationResult& result) {
  if (result.breakdowns.empty()) return {};
  const std::int64_t steps = std::max<std::int64_t>(1, std::int64_t{result.steps} - 1);
  std::map<std::uint32_t, StageSpread> stages;
  RankSpread spread{.stages = {},
                    .most = RankId(0),
                    .least = RankId(0),
                    .most_compute = result.breakdowns.front().compute,
                    .least_compute = result.breakdowns.front().compute,
                    .slow = {}};
  for (std::uint32_t rank = 0; rank < result.breakdowns.size(); ++rank) {
    const Breakdown& own = result.breakdowns[rank];
    StageSpread& stage = stages[graph.ranks[rank].pp];
    stage.stage = graph.ranks[rank].pp;
    ++stage.ranks;
    accumulate_parts(own, stage.mean);
    if (own.compute > spread.most_compute) {
      spread.most = RankId(rank);
      spread.most_compute = own.compute;
    }
    if (own.compute < spread.least_compute) {
      spread.least = RankId(rank);
      spread.least_compute = own.compute;
    }
  }
  for (auto& [number, stage] : stages) {
    stage.mean = divided(stage.mean, static_cast<std::int64_t>(stage.ranks) * steps);
    spread.stages.push_back(stage);
  }
  spread.most_compute = spread.most_compute / steps;
  spread.least_compute = spread.least_compute / steps;
  for (std::uint32_t rank = 0; rank < result.breakdowns.size(); ++rank) {
    const Breakdown own = divided(result.breakdowns[rank], steps);
    const Breakdown& mean = stages.at(graph.ranks[rank].pp).mean;
    if (own.compute <= mean.compute + mean.compute / kSlowerPart) continue;
    spread.slow.push_back({.rank = RankId(rank),
                           .compute = own.compute,
                           .of_stage = mean.compute,
                           .waited = (mean.sum() - mean.compute) - (own.sum() - own.compute)});
  }
  const auto excess = [](const SlowRank& slow) { return slow.compute - slow.of_stage; };
  std::ranges::stable_sort(spread.slow, std::greater(), excess);
  if (spread.slow.size() > kListedSlow) spread.slow.resize(kListedSlow);
  return spread;
}

}  // namespace stepsim
