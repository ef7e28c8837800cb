#include "schedules/plan/communicators.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <unordered_map>
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

struct RankRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
};
RankRange mesh_of(const Ranks& mesh) {
  return {0, mesh.mesh_ranks()};
}

// Ranks of a range with the same key form a group; groups are in the order of their first ranks.
template <typename Key>
Communicator partition_by(const Ranks& mesh, const RankRange& range, std::string name, Axis purpose,
                          const Key& key_of) {
  Communicator communicator{.name = std::move(name), .axis = purpose, .groups = {}, .seat_of = {}};
  std::unordered_map<std::int64_t, std::uint32_t> group_of;  // by key; looked up, never iterated
  for (std::int64_t rank = range.first; rank < range.end; ++rank) {
    const auto [place, added] =
        group_of.try_emplace(key_of(rank), static_cast<std::uint32_t>(communicator.groups.size()));
    if (added) communicator.groups.emplace_back();
    communicator.groups[place->second].emplace_back(static_cast<std::uint32_t>(rank));
  }
  seat_everybody(communicator, static_cast<std::size_t>(mesh.ranks()));
  return communicator;
}

}  // namespace

Communicator partition(const Ranks& mesh, std::string name, Axis purpose,
                       std::initializer_list<PlanAxis> axes) {
  std::array<std::int64_t, kPlanAxes> stride{};  // of each axis in the number of a rank
  std::int64_t inner = 1;
  for (const PlanAxis axis : mesh.order) {
    stride[static_cast<std::size_t>(axis)] = inner;
    inner *= mesh.size_of(axis);
  }
  return partition_by(mesh, mesh_of(mesh), std::move(name), purpose, [&](std::int64_t rank) {
    std::int64_t first = rank;
    for (const PlanAxis axis : axes) {
      first -= coordinate(mesh, rank, axis) * stride[static_cast<std::size_t>(axis)];
    }
    return first;
  });
}

Communicator expert_partition(const Ranks& mesh, std::string name, Axis purpose,
                              std::initializer_list<ExpertAxis> axes) {
  return partition_by(mesh, mesh_of(mesh), std::move(name), purpose, [&](std::int64_t rank) {
    std::int64_t key = coordinate(mesh, rank, PlanAxis::kPipeline);
    for (const ExpertAxis axis :
         {ExpertAxis::kExpertTensor, ExpertAxis::kExpert, ExpertAxis::kExpertData}) {
      const bool varies = std::ranges::count(axes, axis) > 0;
      key = key * mesh.size_of(axis) + (varies ? 0 : coordinate(mesh, rank, axis));
    }
    return key;
  });
}

Communicator neighbours(const Communicator& whole, std::string name, std::int64_t size) {
  Communicator parts{.name = std::move(name), .axis = whole.axis, .groups = {}, .seat_of = {}};
  for (const std::vector<RankId>& group : whole.groups) {
    assert(group.size() % static_cast<std::size_t>(size) == 0);
    for (auto begin = group.begin(); begin != group.end(); begin += size) {
      parts.groups.emplace_back(begin, begin + size);
    }
  }
  seat_everybody(parts, whole.seat_of.size());
  return parts;
}

Communicator across_neighbours(const Communicator& whole, std::string name, std::int64_t size) {
  Communicator parts{.name = std::move(name), .axis = whole.axis, .groups = {}, .seat_of = {}};
  const auto step = static_cast<std::size_t>(size);
  for (const std::vector<RankId>& group : whole.groups) {
    assert(group.size() % step == 0);
    for (std::size_t place = 0; place < step; ++place) {
      std::vector<RankId>& part = parts.groups.emplace_back();
      for (std::size_t i = place; i < group.size(); i += step) part.push_back(group[i]);
    }
  }
  seat_everybody(parts, whole.seat_of.size());
  return parts;
}

Communicator everybody(const Ranks& mesh, std::string name, Axis purpose) {
  return partition_by(mesh, {0, mesh.ranks()}, std::move(name), purpose,
                      [](std::int64_t) { return 0; });
}

Communicator sharing_experts(const Ranks& mesh, std::string name, Axis purpose) {
  assert(mesh.splits_ffn());
  const std::int64_t first = mesh.mesh_ranks();
  return partition_by(mesh, {first, mesh.ranks()}, std::move(name), purpose,
                      [&](std::int64_t rank) { return (rank - first) / mesh.etp; });
}

Communicator mirrored(const Ranks& mesh, const Communicator& replicas) {
  assert(mesh.pp % 2 == 0);
  Communicator pairs{.name = replicas.name, .axis = replicas.axis, .groups = {}, .seat_of = {}};
  const std::int64_t of_a_stage = mesh.ranks() / mesh.pp;
  std::unordered_map<std::int64_t, std::uint32_t> pair_of;  // looked up, never iterated
  for (const bool upper : {false, true}) {
    for (const std::vector<RankId>& group : replicas.groups) {
      const auto rank = static_cast<std::int64_t>(group.front().index());
      const std::int64_t stage = coordinate(mesh, rank, PlanAxis::kPipeline);
      if ((stage >= mesh.pp / 2) != upper) continue;
      const std::int64_t lower = std::min(stage, mesh.pp - 1 - stage);
      const auto [place, added] =
          pair_of.try_emplace(lower * of_a_stage + number_in_stage(mesh, rank),
                              static_cast<std::uint32_t>(pairs.groups.size()));
      if (added) pairs.groups.emplace_back();
      std::vector<RankId>& both = pairs.groups[place->second];
      both.insert(both.end(), group.begin(), group.end());
    }
  }
  seat_everybody(pairs, replicas.seat_of.size());
  return pairs;
}

Communicator some_stages(const Ranks& mesh, std::string name, Axis purpose,
                         const std::vector<std::int32_t>& stages) {
  assert(std::ranges::is_sorted(stages) && (stages.empty() || stages.back() < mesh.pp));
  Communicator communicator = partition(mesh, std::move(name), purpose, {PlanAxis::kPipeline});
  for (std::vector<RankId>& group : communicator.groups) {
    std::vector<RankId> some;
    for (const std::int32_t stage : stages) some.push_back(group[static_cast<std::size_t>(stage)]);
    group = std::move(some);
  }
  communicator.seat_of.clear();
  seat_everybody(communicator, static_cast<std::size_t>(mesh.ranks()));
  return communicator;
}

}  // namespace stepsim
