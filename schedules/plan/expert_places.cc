#include "schedules/plan/expert_places.h"

#include <vector>

namespace stepsim {
namespace {

// Returns the chips of each group of ep, in the order of its members.
std::vector<std::vector<std::uint32_t>> chips_of_groups(const Ranks& mesh, const Places& places) {
  const std::vector<std::uint32_t> chips = place_ranks(mesh, places);
  const auto groups = static_cast<std::size_t>(mesh.ranks() / mesh.ep);
  std::vector<std::vector<std::uint32_t>> result(
      groups, std::vector<std::uint32_t>(static_cast<std::size_t>(mesh.ep)));
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const std::int64_t group = (coordinate(mesh, rank, PlanAxis::kPipeline) * mesh.edp() +
                                coordinate(mesh, rank, ExpertAxis::kExpertData)) *
                                   mesh.etp +
                               coordinate(mesh, rank, ExpertAxis::kExpertTensor);
    const std::int64_t member = coordinate(mesh, rank, ExpertAxis::kExpert);
    result[static_cast<std::size_t>(group)][static_cast<std::size_t>(member)] =
        chips[static_cast<std::size_t>(rank)];
  }
  return result;
}

}  // namespace

std::int64_t ranks_of_expert_node(const Ranks& mesh, const Places& places) {
  if (places.levels.empty() || places.levels.front().kind != LevelKind::kSwitched) return 0;
  const std::uint32_t size = places.levels.front().size;
  std::size_t node = 0;
  for (const std::vector<std::uint32_t>& group : chips_of_groups(mesh, places)) {
    std::size_t first = 1;  // index of the next node's first rank
    while (first < group.size() && group[first] / size == group[0] / size) ++first;
    if (node == 0) node = first;
    if (first != node || group.size() % node != 0) return 0;
    for (std::size_t member = node; member < group.size(); ++member) {
      const std::uint32_t begin = group[member - member % node];
      if (group[member] / size != begin / size) return 0;
      if (group[member] % size != group[member % node] % size) return 0;
      if (begin / size == group[member - member % node - 1] / size) return 0;
    }
  }
  return static_cast<std::int64_t>(node);
}

bool routes_by_matrix(const ModelSpec& model, const Ranks& mesh, const ExpertPlacement& experts) {
  const bool uneven = !model.experts.load.empty() || model.experts.capacity_factor > 0;
  return mesh.ep > 1 && (experts.dispatch != Dispatch::kAllToAll || uneven);
}

ExpertRouting expert_routing(const ModelSpec& model, const Ranks& mesh,
                             const ExpertPlacement& experts, std::int64_t node) {
  ExpertRouting routing{.members = static_cast<std::uint32_t>(mesh.ep),
                        .experts = static_cast<std::uint32_t>(model.experts.routed),
                        .top_k = static_cast<std::uint32_t>(model.experts.visited()),
                        .tokens = 1,
                        .token_bytes = Bytes(1),
                        .load = model.experts.load,
                        .copies = TokenCopies::kPerExpert,
                        .capacity_factor = model.experts.capacity_factor};
  if (experts.dispatch == Dispatch::kAllToAll) return routing;
  routing.copies = node < mesh.ep ? TokenCopies::kPerNode : TokenCopies::kPerMember;
  routing.members_of_node = static_cast<std::uint32_t>(node);
  routing.node_limit = static_cast<std::uint32_t>(experts.node_limit.value_or(0));
  return routing;
}

}  // namespace stepsim
