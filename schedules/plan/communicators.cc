#include "schedules/plan/communicators.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stepsim {
namespace {

void seat_everybody(Communicator& communicator, std::size_t ranks) {
  communicator.seat_of.resize(ranks);
  for (std::uint32_t group = 0; group < communicator.groups.size(); ++group) {
    for (std::uint32_t member = 0; member < communicator.groups[group].size(); ++member) {
      communicator.seat_of[communicator.groups[group][member].index()] = {group, member};
    }
  }
}

}  // namespace

Communicator partition(const ParallelPlan& plan, std::string name, Axis purpose,
                       std::initializer_list<PlanAxis> axes) {
  Communicator communicator{.name = std::move(name), .axis = purpose, .groups = {}, .seat_of = {}};
  std::map<std::int64_t, std::uint32_t> group_of;  // by the rank with the coordinates of `axes` 0
  for (std::int64_t rank = 0; rank < plan.ranks(); ++rank) {
    std::int64_t first = rank;
    std::int64_t stride = 1;
    for (const PlanAxis axis : plan.order) {
      if (std::ranges::count(axes, axis) > 0) first -= coordinate(plan, rank, axis) * stride;
      stride *= plan.size_of(axis);
    }
    const auto [place, added] =
        group_of.try_emplace(first, static_cast<std::uint32_t>(communicator.groups.size()));
    if (added) communicator.groups.emplace_back();
    communicator.groups[place->second].emplace_back(static_cast<std::uint32_t>(rank));
  }
  seat_everybody(communicator, static_cast<std::size_t>(plan.ranks()));
  return communicator;
}

Communicator mirrored_replicas(const ParallelPlan& plan, std::string name, Axis purpose) {
  const Communicator replicas =
      partition(plan, name, purpose, {PlanAxis::kContext, PlanAxis::kData});
  Communicator communicator{.name = std::move(name), .axis = purpose, .groups = {}, .seat_of = {}};
  // By tensor coordinate and the lower of the two pipeline coordinates.
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> group_of;
  for (const bool upper : {false, true}) {
    for (const std::vector<RankId>& group : replicas.groups) {
      const auto rank = static_cast<std::int64_t>(group.front().index());
      const std::int64_t stage = coordinate(plan, rank, PlanAxis::kPipeline);
      if ((stage >= plan.pp / 2) != upper) continue;
      const auto [place, added] = group_of.try_emplace(
          {coordinate(plan, rank, PlanAxis::kTensor), std::min(stage, plan.pp - 1 - stage)},
          static_cast<std::uint32_t>(communicator.groups.size()));
      if (added) communicator.groups.emplace_back();
      std::vector<RankId>& both = communicator.groups[place->second];
      both.insert(both.end(), group.begin(), group.end());
    }
  }
  seat_everybody(communicator, static_cast<std::size_t>(plan.ranks()));
  return communicator;
}

Communicator first_and_last_stage(const ParallelPlan& plan, std::string name, Axis purpose) {
  Communicator communicator = partition(plan, std::move(name), purpose, {PlanAxis::kPipeline});
  for (std::vector<RankId>& group : communicator.groups) group = {group.front(), group.back()};
  communicator.seat_of.clear();
  seat_everybody(communicator, static_cast<std::size_t>(plan.ranks()));
  return communicator;
}

}  // namespace stepsim
